#include "compiler/aot/partition.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "compiler/aot/min_cut.h"
#include "compiler/aot/operator_traits.h"
#include "compiler/aot/symbolic_joint.h"
#include "core/exec/interpreter.h"
#include "core/ir/edit.h"
#include "core/tensor/convert.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/kernel_errors.h"

namespace cutaway::aot {
namespace {

using ir::ValueId;

/// At the sizes of the examples, where they are symbols.
int64_t bytes_of(const ir::Value& v, const symbolic::SymbolValues& symbols) {
  if (!v.type.is_tensor()) return 0;
  int64_t bytes = ir::dtype_bytes(v.type.tensor.dtype);
  for (const ir::Dim& d : v.type.tensor.sizes)
    if (__builtin_mul_overflow(bytes, exec::evaluate(d, symbols), &bytes)) return INT64_MAX / 4;
  return bytes;
}

/// Strides that clone keeps: a permutation of row-major ones.
bool is_dense(const ir::TensorType& t, const symbolic::SymbolValues& symbols) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    const int64_t size = exec::evaluate(t.sizes[i], symbols);
    if (size == 0) return true;
    if (size > 1) dims.emplace_back(exec::evaluate(t.strides[i], symbols), size);
  }
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

/// Copies parts of one graph into another, value by value, on first use.
class Copier {
 public:
  Copier(const ir::Graph& from, std::string name) : from_(from), made_(from.values.size(), ir::kNoValue), locations_(from.locations.size(), ir::kNoLocation) { to_.name = std::move(name); }
  ValueId input(ValueId id, ir::InputKind kind, const std::string& qualified) {
    return made_[id] = to_.add_input(from_.values[id].name, from_.values[id].type, kind, qualified);
  }
  void node(const ir::Node& n) {
    ir::Node copy = n;
    for (ir::Argument& a : copy.args) rename(a);
    for (auto& [key, a] : copy.kwargs) rename(a);
    for (ValueId& r : copy.results) r = made_[r] = to_.add_value(from_.values[r].name, from_.values[r].type);
    if (n.location != ir::kNoLocation) {
      ir::LocationId& known = locations_[n.location];
      if (known == ir::kNoLocation) known = to_.add_location(from_.locations[n.location]);
      copy.location = known;
    }
    to_.body.nodes.push_back(std::move(copy));
  }
  void output(ir::Argument a) {
    rename(a);
    to_.body.outputs.push_back(std::move(a));
  }
  /// A copy of the value, made here and now.
  void output_clone(ValueId id) {
    ir::Node n;
    n.target = "aten.clone";
    n.args = {ir::ValueRef{made_[id]}};
    n.results = {to_.add_value(from_.values[id].name + "_before", from_.values[id].type)};
    n.returns = {ir::Node::kSingle};
    to_.body.outputs.emplace_back(ir::ValueRef{n.results[0]});
    to_.body.nodes.push_back(std::move(n));
  }
  bool has(ValueId id) const { return made_[id] != ir::kNoValue; }
  ir::Graph take() { return std::move(to_); }

 private:
  void rename(ir::Argument& a) {
    ir::for_each_value(a, [&](ValueId& id) { id = made_[id]; });
  }
  const ir::Graph& from_;
  ir::Graph to_;
  std::vector<ValueId> made_;
  std::vector<ir::LocationId> locations_;   // by that of the other graph
};

class Splitter {
 public:
  Splitter(const Joint& joint, std::string_view stem) : joint_(joint), graph_(joint.graph), nodes_(graph_.body.nodes), stem_(stem) {
    const size_t n = graph_.values.size();
    maker_.assign(n, kNone);
    owner_.resize(n);
    for (ValueId id = 0; id < n; ++id) owner_[id] = id;
    in_backward_.assign(n, false);
    input_of_.assign(n, kNone);
    for (size_t i = 0; i < graph_.inputs.size(); ++i) input_of_[input_value(i)] = i;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ValueId viewed = viewed_value(nodes_[i]);
      for (const ValueId r : nodes_[i].results) {
        maker_[r] = i;
        if (viewed != ir::kNoValue) owner_[r] = owner_[viewed];
      }
    }
  }

  base::Result<Split> run(Partition partition) {
    result_.forward.name = stem_ + (joint_.has_backward ? "_forward" : "_inference");
    if (joint_.has_backward) {
      find_backward();
      std::vector<ValueId> saved = partition == Partition::min_cut ? cheapest() : everything_used();
      CUTAWAY_TRY(place(saved));
      write_backward(saved);
      write_forward(saved);
    } else {
      write_forward({});
    }
    return std::move(result_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t result_count() const { return joint_.results.size(); }
  ValueId input_value(size_t i) const { return graph_.inputs[i].value; }
  size_t first_tangent() const { return joint_.primals.size() + joint_.constants.size(); }
  bool is_view(ValueId id) const { return owner_[id] != id; }

  /// What depends on a tangent belongs to backward. What does not may be asked for by it, and is then saved or made again.
  void find_backward() {
    for (size_t i = first_tangent(); i < graph_.inputs.size(); ++i) in_backward_[input_value(i)] = true;
    node_in_backward_.assign(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      bool depends = false;
      ir::for_each_use(nodes_[i], [&](ValueId id) { depends |= in_backward_[id]; });
      node_in_backward_[i] = depends;
      for (const ValueId r : nodes_[i].results) in_backward_[r] = depends;
    }
    is_asked_.assign(graph_.values.size(), false);
    auto ask = [&](ValueId id) {
      if (!in_backward_[id] && !is_asked_[id]) {
        is_asked_[id] = true;
        asked_.push_back(id);
      }
    };
    std::vector<bool> needed = needed_for_gradients();
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (node_in_backward_[i] && needed[i]) ir::for_each_use(nodes_[i], ask);
    for (size_t i = result_count(); i < graph_.body.outputs.size(); ++i) ir::for_each_value(graph_.body.outputs[i], ask);
  }

  std::vector<bool> needed_for_gradients() const {
    std::vector<bool> value(graph_.values.size(), false), node(nodes_.size(), false);
    for (size_t i = result_count(); i < graph_.body.outputs.size(); ++i) ir::for_each_value(graph_.body.outputs[i], [&](ValueId id) { value[id] = true; });
    for (size_t i = nodes_.size(); i-- > 0;) {
      if (!node_in_backward_[i]) continue;
      node[i] = operator_traits(nodes_[i].target).must_stay || nodes_[i].results.empty() || std::any_of(nodes_[i].results.begin(), nodes_[i].results.end(), [&](ValueId r) { return value[r]; });
      if (node[i]) ir::for_each_use(nodes_[i], [&](ValueId id) { value[id] = true; });
    }
    return node;
  }

  /// Views are saved by the owner of their storage and made again: that costs no memory and next to no time.
  std::vector<ValueId> everything_used() const {
    std::vector<bool> chosen(graph_.values.size(), false);
    for (const ValueId id : asked_)
      if (graph_.values[id].type.is_tensor()) chosen[is_constant_expression(id) ? id : owner_[id]] = true;   // a number is computed again
    return in_order(chosen);
  }
  /// Made of literals alone (full, arange): nothing to save.
  bool is_constant_expression(ValueId id) const {
    if (maker_[id] == kNone || !operator_traits(nodes_[maker_[id]].target).is_cheap) return false;
    bool uses = false;
    ir::for_each_use(nodes_[maker_[id]], [&](ValueId) { uses = true; });
    return !uses;
  }

  std::vector<ValueId> cheapest() const {
    const auto values = static_cast<uint32_t>(graph_.values.size());
    const uint32_t source = values * 2, sink = values * 2 + 1;
    auto in = [](ValueId id) { return id * 2; };
    auto out = [](ValueId id) { return id * 2 + 1; };
    MinCut network(values * 2 + 2);
    // The program may write to inputs and outputs before backward runs. Eager then raises where it has kept them, and only there.
    std::vector<bool> is_shown(values, false), is_kept(values, false);
    for (size_t i = 0; i < joint_.primals.size(); ++i) is_shown[input_value(i)] = !joint_.primals[i].writes_data;   // of one that is overwritten a copy is saved
    for (size_t r = 0; r < result_count(); ++r) ir::for_each_value(graph_.body.outputs[r], [&](ValueId id) { is_shown[owner_[id]] = true; });
    for (const ValueId id : asked_) is_kept[owner_[id]] = true;
    std::vector<bool> met(values, false);
    std::vector<ValueId> queue = asked_;
    for (const ValueId id : asked_) {
      met[id] = true;
      network.add_edge(out(id), sink, MinCut::kUnbounded);
    }
    for (size_t head = 0; head < queue.size(); ++head) {
      const ValueId id = queue[head];
      network.add_edge(in(id), out(id), is_view(id) || (is_shown[id] && !is_kept[id]) ? MinCut::kUnbounded : cost_of(id));
      const ir::Node* node = maker_[id] == kNone ? nullptr : &nodes_[maker_[id]];
      if (!node || !may_run_again(*node)) {
        network.add_edge(source, in(id), MinCut::kUnbounded);
        continue;
      }
      ir::for_each_use(*node, [&](ValueId used) {
        network.add_edge(out(used), in(id), MinCut::kUnbounded);
        if (!met[used]) {
          met[used] = true;
          queue.push_back(used);
        }
      });
    }
    network.solve(source, sink);
    const auto side = network.sink_side();
    std::vector<bool> chosen(values, false);
    for (ValueId id = 0; id < values; ++id) chosen[id] = met[id] && side[out(id)] && !side[in(id)];
    return in_order(chosen);
  }
  bool may_run_again(const ir::Node& n) const {
    const OperatorTraits& traits = operator_traits(n.target);
    return !traits.must_stay && (traits.is_cheap || traits.viewed_argument >= 0);
  }
  /// Parameters live anyway; what is returned usually does.
  int64_t cost_of(ValueId id) const {
    const int64_t bytes = 1 + bytes_of(graph_.values[id], joint_.symbols);
    const size_t input = input_of_[id];
    if (input == kNone || (input < joint_.primals.size() && joint_.primals[input].writes_data)) return bytes;   // of an input that is overwritten a copy
    const bool is_state = graph_.inputs[input].kind != ir::InputKind::user || (input < joint_.primals.size() && joint_.primals[input].requires_grad);
    return is_state ? 1 : 1 + bytes / 2;
  }

  std::vector<ValueId> in_order(const std::vector<bool>& chosen) const {
    std::vector<ValueId> list;
    for (const ir::Input& i : graph_.inputs)
      if (chosen[i.value]) list.push_back(i.value);
    for (const ir::Node& n : nodes_)
      for (const ValueId r : n.results)
        if (chosen[r]) list.push_back(r);
    return list;
  }

  /// Finds for each saved value where the wrapper takes it from.
  base::Status place(const std::vector<ValueId>& saved) {
    std::vector<size_t> result_of(graph_.values.size(), kNone);
    for (size_t r = 0; r < result_count(); ++r)
      if (const auto* ref = graph_.body.outputs[r].as<ir::ValueRef>()) result_of[ref->id] = r;
    for (const ValueId id : saved) {
      Saved s;
      const size_t input = input_of_[id];
      if (input != kNone && input < joint_.primals.size()) {
        if (joint_.primals[input].writes_data) {   // its new values overwrite what backward needs: a copy is saved
          if (!is_dense(graph_.values[id].type.tensor, joint_.symbols))
            return base::Error{.what = "the input %" + graph_.values[id].name + " is written to, and backward needs its old values: refused for a tensor whose memory has gaps or overlaps", .place = graph_.name};
          s.index = extras_++;
        } else {
          s.from = Saved::From::primal;
          s.index = input;
        }
      } else if (input != kNone) {
        s.from = Saved::From::constant;
        s.index = input - joint_.primals.size();
      } else if (result_of[id] != kNone) {
        s.from = Saved::From::result;
        s.index = result_of[id];
      } else {
        s.index = extras_++;
      }
      for (size_t r = 0; r < result_count(); ++r)
        if (const auto* ref = graph_.body.outputs[r].as<ir::ValueRef>(); ref && input == kNone && ref->id != id && owner_[ref->id] == owner_[id]) s.shares_with.push_back(r);
      (s.from == Saved::From::extra ? result_.saved_bytes : result_.kept_bytes) += bytes_of(graph_.values[id], joint_.symbols);
      result_.saved.push_back(std::move(s));
    }
    return {};
  }

  void write_backward(const std::vector<ValueId>& saved) {
    Copier copy(graph_, stem_ + "_backward");
    for (const ValueId id : saved) copy.input(id, ir::InputKind::user, {});
    for (size_t i = first_tangent(); i < graph_.inputs.size(); ++i) copy.input(input_value(i), ir::InputKind::user, {});
    const std::vector<bool> needed = needed_for_gradients();
    std::vector<bool> done(nodes_.size(), false);
    // What is made again comes right before its first use, so that it does not live longer than it must.
    std::vector<size_t> stack;
    auto emit = [&](size_t wanted) {
      stack.push_back(wanted);
      while (!stack.empty()) {
        const size_t at = stack.back();
        bool ready = true;
        if (!done[at])
          ir::for_each_use(nodes_[at], [&](ValueId id) {
            if (copy.has(id) || maker_[id] == kNone || done[maker_[id]]) return;
            stack.push_back(maker_[id]);
            ready = false;
          });
        if (!ready) continue;
        stack.pop_back();
        if (done[at]) continue;
        done[at] = true;
        copy.node(nodes_[at]);
        if (!node_in_backward_[at]) ++result_.recomputed;
      }
    };
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (node_in_backward_[i] && needed[i]) emit(i);
    for (size_t i = result_count(); i < graph_.body.outputs.size(); ++i) {
      ir::for_each_value(graph_.body.outputs[i], [&](ValueId id) {
        if (!copy.has(id) && maker_[id] != kNone) emit(maker_[id]);
      });
      copy.output(graph_.body.outputs[i]);
    }
    result_.backward = copy.take();
    if (!joint_.symbols.empty()) result_.symbol_inputs = add_symbol_inputs(result_.backward);
  }

  /// Nothing uses what it gives, but eager would raise the error that it raises (a dtype without a kernel, an index out of range).
  bool may_raise(size_t i) const {
    const auto name = ir::split_op_name(nodes_[i].target);
    const auto op = name ? c10::Dispatcher::singleton().findSchema({name->name, name->overload}) : std::nullopt;
    const ir::Graph alone = ir::extract_subgraph(graph_, {i});
    auto program = exec::Program::prepare(alone);
    if (!op || !program.ok()) return true;
    const trace::FakeMode fakes;
    std::vector<c10::IValue> inputs;
    bool found = false;
    exec::Hooks hooks;
    hooks.before = [&](size_t, const ir::Node&, const std::vector<c10::IValue>& args) { found = trace::may_raise(*op, args); };
    try {
      for (const ir::Input& in : alone.inputs) inputs.push_back(example_of(alone.value(in.value).type));
      (void)program->run(inputs, {.hooks = &hooks});
    } catch (const c10::Error&) {
      return true;
    }
    return found;
  }
  c10::IValue example_of(const ir::Type& type) const {
    if (type.kind == ir::Type::Kind::integer) return int64_t{1};
    if (type.kind == ir::Type::Kind::floating) return 1.0;
    TORCH_CHECK(type.is_tensor(), "a value without an example");
    std::vector<int64_t> sizes;
    for (const ir::Dim& d : type.tensor.sizes) sizes.push_back(exec::evaluate(d, joint_.symbols));
    return trace::make_fake(at::empty(sizes, at::TensorOptions().dtype(tensor::to_aten(type.tensor.dtype)).device(at::kMeta)), tensor::to_aten(type.tensor.device));
  }

  void write_forward(const std::vector<ValueId>& saved) {
    std::vector<bool> value(graph_.values.size(), false), node(nodes_.size(), false);
    for (size_t r = 0; r < result_count(); ++r) ir::for_each_value(graph_.body.outputs[r], [&](ValueId id) { value[id] = true; });
    for (const ValueId id : saved) value[id] = true;
    for (size_t i = nodes_.size(); i-- > 0;) {
      if (joint_.has_backward && node_in_backward_[i]) continue;
      node[i] = operator_traits(nodes_[i].target).must_stay || nodes_[i].results.empty() ||
                std::any_of(nodes_[i].results.begin(), nodes_[i].results.end(), [&](ValueId r) { return value[r]; }) || may_raise(i);
      if (node[i]) ir::for_each_use(nodes_[i], [&](ValueId id) { value[id] = true; });
    }
    Copier copy(graph_, result_.forward.name);
    for (size_t i = 0; i < first_tangent(); ++i) copy.input(input_value(i), graph_.inputs[i].kind, graph_.inputs[i].qualified_name);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (node[i]) copy.node(nodes_[i]);
    for (size_t r = 0; r < result_count(); ++r) copy.output(graph_.body.outputs[r]);
    for (size_t s = 0; s < saved.size(); ++s) {
      if (result_.saved[s].from != Saved::From::extra) continue;
      if (maker_[saved[s]] == kNone) copy.output_clone(saved[s]);   // an input that is overwritten
      else copy.output(ir::ValueRef{saved[s]});
    }
    result_.forward = copy.take();
  }

  const Joint& joint_;
  const ir::Graph& graph_;
  const std::vector<ir::Node>& nodes_;
  const std::string stem_;
  std::vector<size_t> input_of_;          // by value: its position among the inputs; kNone for a node's result
  std::vector<size_t> maker_;             // by value: the node that makes it; kNone for an input
  std::vector<ValueId> owner_;            // by value: the one whose storage it is
  std::vector<bool> in_backward_, node_in_backward_, is_asked_;
  std::vector<ValueId> asked_;            // values of forward that backward uses
  size_t extras_ = 0;
  Split result_;
};

}  // namespace

base::Result<Split> split(const Joint& joint, Partition partition, std::string_view stem) { return Splitter(joint, stem).run(partition); }

}  // namespace cutaway::aot
