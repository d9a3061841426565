#include "compiler/aot/symbolic_joint.h"

#include <algorithm>
#include <set>

#include "core/ir/expressions.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/symbolic.h"

namespace cutaway::aot {
namespace {

using base::Error;
using base::Result;
using c10::IValue;
using ir::ValueId;

ir::List dims_as_list(const std::vector<ir::Dim>& dims) {
  ir::List list;
  for (const ir::Dim& d : dims) list.items.push_back(d.is_symbolic() ? ir::Argument(d) : ir::Argument(d.value()));
  return list;
}
ir::Dim to_dim(const ir::Argument& a) {
  if (const auto* d = a.as<ir::Dim>()) return *d;
  return {*a.as<int64_t>()};
}
std::vector<ir::Dim> to_dims(const ir::Argument& a) {
  std::vector<ir::Dim> dims;
  for (const ir::Argument& x : a.as<ir::List>()->items) dims.push_back(to_dim(x));
  return dims;
}

/// Appends the nodes of a graph with one tensor input; gives the value that it returns.
ValueId append(ir::Graph& to, const ir::Graph& from, ValueId input) {
  std::vector<ValueId> made(from.values.size(), ir::kNoValue);
  made[from.inputs.front().value] = input;
  const auto rename = [&](ValueId& id) { id = made[id]; };
  for (ir::Node n : from.body.nodes) {
    for (ir::Argument& a : n.args) ir::for_each_value(a, rename);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, rename);
    for (ValueId& r : n.results) r = made[r] = to.add_value(from.values[r].name, from.values[r].type);
    n.location = ir::kNoLocation;
    to.body.nodes.push_back(std::move(n));
  }
  return made[from.body.outputs.front().as<ir::ValueRef>()->id];
}

/// The other way: nodes first to last of a graph, which make `output` of `input`, as a graph of their own.
ir::Graph cut_out(const ir::Graph& from, size_t first, size_t last, ValueId input, ValueId output, const std::string& name) {
  ir::Graph to;
  to.name = name;
  std::vector<ValueId> made(from.values.size(), ir::kNoValue);
  made[input] = to.add_input("base", from.values[input].type);
  const auto rename = [&](ValueId& id) { id = made[id]; };
  for (size_t i = first; i < last; ++i) {
    ir::Node n = from.body.nodes[i];
    for (ir::Argument& a : n.args) ir::for_each_value(a, rename);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, rename);
    for (ValueId& r : n.results) r = made[r] = to.add_value(from.values[r].name, from.values[r].type);
    to.body.nodes.push_back(std::move(n));
  }
  to.body.outputs.emplace_back(ir::ValueRef{made[output]});
  return to;
}

/// The value that views of this output start from. `made`: by output, what views gave.
ValueId base_of(const ir::Graph& graph, const OutputRule& rule, const std::vector<ValueId>& made) {
  if (rule.through) return made[*rule.through];
  if (rule.from == OutputRule::From::view_of_primal) return graph.inputs[rule.index].value;
  return graph.body.outputs[rule.index].as<ir::ValueRef>()->id;
}

/// The joint graph and, after it, every view and every new shape, each as one more output.
Result<ir::Graph> with_views(const Joint& joint) {
  ir::Graph g = joint.graph;
  for (size_t p = 0; p < joint.primals.size(); ++p) {
    const Primal& primal = joint.primals[p];
    if (!primal.writes_metadata) continue;
    ir::Node n;
    n.target = "aten.as_strided";
    n.args = {ir::ValueRef{g.inputs[p].value}, dims_as_list(primal.new_sizes), dims_as_list(primal.new_strides), dims_as_list({primal.new_offset}).items.front()};
    ir::Type type = g.values[g.inputs[p].value].type;
    type.tensor.sizes = primal.new_sizes;
    type.tensor.strides = primal.new_strides;
    n.results = {g.add_value("shape", std::move(type))};
    n.returns = {ir::Node::kSingle};
    g.body.outputs.emplace_back(ir::ValueRef{n.results.front()});
    g.body.nodes.push_back(std::move(n));
  }
  std::vector<ValueId> made(joint.outputs.size(), ir::kNoValue);
  for (const size_t o : order_views(joint.outputs)) {
    const OutputRule& rule = joint.outputs[o];
    if (rule.view->inputs.size() != 1 || !rule.view->body.outputs.front().as<ir::ValueRef>()) return Error{.what = "an output is a view that needs more than its base"};
    made[o] = append(g, *rule.view, base_of(g, rule, made));
    g.body.outputs.emplace_back(ir::ValueRef{made[o]});
  }
  return g;
}

/// Takes them off again.
void take_views(Joint& joint, ir::Graph unified, const Joint& first) {
  // Counted from the end: unification may have put nodes before, which compute numbers.
  size_t appended = 0;
  for (const Primal& primal : joint.primals) appended += primal.writes_metadata;
  for (const OutputRule& rule : joint.outputs) appended += rule.view ? rule.view->body.nodes.size() : 0;
  const size_t nodes = unified.body.nodes.size() - appended, outputs = first.graph.body.outputs.size();
  size_t node = nodes, output = outputs;
  for (Primal& primal : joint.primals) {
    if (!primal.writes_metadata) continue;
    const ir::Node& n = unified.body.nodes[node++];
    primal.new_sizes = to_dims(n.args[1]);
    primal.new_strides = to_dims(n.args[2]);
    primal.new_offset = to_dim(n.args[3]);
    ++output;
  }
  std::vector<ValueId> made(joint.outputs.size(), ir::kNoValue);
  for (const size_t o : order_views(joint.outputs)) {
    OutputRule& rule = joint.outputs[o];
    const size_t length = rule.view->body.nodes.size();
    made[o] = unified.body.outputs[output++].as<ir::ValueRef>()->id;
    rule.view = cut_out(unified, node, node + length, base_of(unified, rule, made), made[o], rule.view->name);
    node += length;
  }
  unified.body.nodes.resize(nodes);
  unified.body.outputs.resize(outputs);
  joint.graph = std::move(unified);
}

/// What the wrapper does besides running the graphs. It must not depend on the sizes.
bool same_facts(const Joint& a, const Joint& b) {
  const auto same_primal = [](const Primal& x, const Primal& y) {
    return x.inputs == y.inputs && !x.is_base && !y.is_base && x.requires_grad == y.requires_grad && x.writes_data == y.writes_data && x.writes_under_no_grad == y.writes_under_no_grad &&
           x.write_count == y.write_count && x.requires_grad_after == y.requires_grad_after && x.writes_metadata == y.writes_metadata;
  };
  const auto same_rule = [](const OutputRule& x, const OutputRule& y) {
    if (x.from != y.from || x.index != y.index || x.requires_grad != y.requires_grad || x.through != y.through || x.view.has_value() != y.view.has_value()) return false;
    if (x.view && x.view->body.nodes.size() != y.view->body.nodes.size()) return false;
    return x.from != OutputRule::From::literal || x.literal == y.literal;
  };
  const auto same_result = [](const ForwardResult& x, const ForwardResult& y) { return x.what == y.what && x.index == y.index && x.requires_grad == y.requires_grad; };
  return a.has_backward == b.has_backward && a.tangents == b.tangents && a.cuts == b.cuts && std::ranges::equal(a.primals, b.primals, same_primal) && std::ranges::equal(a.outputs, b.outputs, same_rule) &&
         std::ranges::equal(a.results, b.results, same_result);
}

/// The numbers of a captured graph at these sizes, step by step: what is made of them in the joint graph is known, not guessed.
class Reported {
 public:
  Reported(const symbolic::SymbolValues& values, std::vector<symbolic::Computation>& out) : values_(values), out_(out) {}
  void report(const ir::Graph& captured) {
    for (const ir::Value& v : captured.values) {
      if (!v.type.is_tensor()) continue;
      for (const ir::Dim& d : v.type.tensor.sizes) report(d);
    }
    ir::for_each_node(captured.body, [&](const ir::Node& n) {
      for (const ir::Argument& a : n.args) report(a);
      for (const auto& [key, a] : n.kwargs) report(a);
    });
  }

 private:
  void report(const ir::Dim& d) { if (d.is_symbolic()) (void)number(*d.expr()); }
  void report(const ir::Argument& a) {
    ir::for_each_leaf(a, [&](const ir::Argument& leaf) { if (const auto* d = leaf.as<ir::Dim>()) report(*d); });
  }
  int64_t number(const ir::SymExpr& e) {
    using Kind = ir::SymExpr::Kind;
    if (e.kind == Kind::constant) return e.constant;
    if (e.kind == Kind::symbol) return *values_.find(e.symbol);
    using Step = symbolic::Computation::Kind;
    static constexpr Step kSteps[] = {Step::add, Step::add, Step::add, Step::mul, Step::floor_div, Step::mod, Step::min, Step::max};   // the first two are no steps
    int64_t sofar = 0;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      const int64_t operand = number(*e.operands[i]);
      if (i == 0) { sofar = operand; continue; }
      const int64_t result = exec::evaluate(symbolic::compose(e.kind, {ir::Dim(sofar), ir::Dim(operand)}), values_);
      out_.push_back({kSteps[static_cast<size_t>(e.kind)], sofar, operand, result});
      sofar = result;
    }
    return sofar;
  }
  const symbolic::SymbolValues& values_;
  std::vector<symbolic::Computation>& out_;
};

class Sampler {
 public:
  Sampler(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) : captured_(captured), examples_(examples), options_(options) {}

  /// Why these inputs cannot have symbolic sizes; empty when they can.
  std::string prepare() {
    std::set<const c10::StorageImpl*> storages;
    std::set<const c10::TensorImpl*> met;
    std::vector<ir::Dim> dims;
    for (size_t i = 0; i < examples_.size(); ++i) {
      const ir::Type& type = captured_.value(captured_.inputs[i].value).type;
      if (type.kind == ir::Type::Kind::integer) return "an input is an integer";
      if (!type.is_tensor()) continue;
      if (!examples_[i].isTensor() || !examples_[i].toTensor().defined()) return "an input that was captured as a tensor is none";
      const at::Tensor& t = examples_[i].toTensor();
      if (static_cast<size_t>(t.dim()) != type.tensor.sizes.size()) return "an input has another number of dimensions than the captured one";
      if (met.insert(t.unsafeGetTensorImpl()).second && t.has_storage() && !storages.insert(t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()).second) return "inputs share a storage";
      for (const ir::Dim& d : type.tensor.sizes)
        if (d.is_symbolic()) dims.push_back(d);
    }
    auto sources = exec::SymbolSources::find(captured_, dims);
    if (!sources.ok()) return sources.error().what;
    try {
      hints_ = sources->values(examples_);
    } catch (const c10::Error& e) {
      return e.what_without_backtrace();
    }
    return {};
  }

  std::vector<symbolic::Symbol> symbols() const {
    std::vector<symbolic::Symbol> list;
    for (size_t i = 0; i < hints_.numbers().size(); ++i) list.push_back({hints_.names()[i], hints_.numbers()[i]});
    return list;
  }
  const symbolic::SymbolValues& hints() const { return hints_; }

  Result<symbolic::Recording> record(const std::vector<int64_t>& numbers) {
    const symbolic::SymbolValues values = hints_.with(numbers);
    std::vector<IValue> inputs;
    std::vector<std::pair<at::Tensor, at::Tensor>> made;   // a tensor that is given twice stays one
    for (size_t i = 0; i < examples_.size(); ++i) {
      inputs.push_back(examples_[i]);
      const ir::Type& type = captured_.value(captured_.inputs[i].value).type;
      if (!type.is_tensor()) continue;
      const at::Tensor& t = examples_[i].toTensor();
      std::vector<int64_t> sizes;
      for (const ir::Dim& d : type.tensor.sizes) sizes.push_back(exec::evaluate(d, values));
      if (t.sizes() == sizes) continue;
      auto known = std::ranges::find_if(made, [&](const auto& m) { return m.first.is_same(t); });
      if (known == made.end()) known = made.insert(known, {t, trace::make_fake(t, sizes)});
      inputs.back() = known->second;
    }
    JointOptions options = options_;
    if (first_) options.sink = nullptr;
    CUTAWAY_TRY_ASSIGN(const ir::Graph at_numbers, symbolic::at_sizes(captured_, values));
    CUTAWAY_TRY_ASSIGN(Joint joint, record_joint(at_numbers, inputs, options));
    symbolic::Recording recording;
    CUTAWAY_TRY_ASSIGN(recording.graph, with_views(joint));
    recording.constants = constants_.of(joint.constants);
    Reported(values, recording.computations).report(captured_);
    if (first_ && !same_facts(*first_, joint)) return Error{.what = "what is written to, returned or differentiated depends on the size"};
    if (!first_) first_ = std::move(joint);
    return recording;
  }
  std::optional<Joint>& first() { return first_; }

 private:
  const ir::Graph& captured_;
  const std::vector<IValue>& examples_;
  const JointOptions& options_;
  symbolic::SymbolValues hints_;
  std::optional<Joint> first_;
  trace::ConstantNumbers constants_;
};

}  // namespace

bool has_symbolic_inputs(const ir::Graph& captured) {
  return std::ranges::any_of(captured.inputs, [&](const ir::Input& i) {
    const ir::Type& type = captured.value(i.value).type;
    return type.is_tensor() && std::ranges::any_of(type.tensor.sizes, [](const ir::Dim& d) { return d.is_symbolic(); });
  });
}

Result<Joint> record_joint_at_numbers(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) {
  std::vector<ir::Dim> dims;
  for (const ir::Input& i : captured.inputs)
    if (const ir::Type& type = captured.value(i.value).type; type.is_tensor())
      for (const ir::Dim& d : type.tensor.sizes)
        if (d.is_symbolic()) dims.push_back(d);
  CUTAWAY_TRY_ASSIGN(exec::SymbolSources sources, exec::SymbolSources::find(captured, dims));
  try {
    CUTAWAY_TRY_ASSIGN(const ir::Graph at_numbers, symbolic::at_sizes(captured, sources.values(examples)));
    return record_joint(at_numbers, examples, options);
  } catch (const c10::Error& e) {
    return Error{.what = "the inputs have sizes that the captured graph does not take", .place = captured.name, .because = e.what_without_backtrace()};
  }
}

Result<Joint> record_symbolic_joint(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) {
  Sampler sampler(captured, examples, options);
  const auto at_numbers = [&](std::string because) -> Result<Joint> {
    CUTAWAY_TRY_ASSIGN(Joint joint, record_joint_at_numbers(captured, examples, options));
    joint.static_because = std::move(because);
    return joint;
  };
  if (examples.size() != captured.inputs.size()) return record_joint(captured, examples, options);   // which says so
  if (std::string why = sampler.prepare(); !why.empty()) return at_numbers(std::move(why));
  auto symbolic = trace::record_symbolic([&](const std::vector<int64_t>& values) { return sampler.record(values); }, sampler.symbols());
  if (!symbolic.ok()) return sampler.first() ? at_numbers(symbolic.error().what) : Result<Joint>(std::move(symbolic).error());
  Joint joint = std::move(*sampler.first());
  for (const auto& s : symbolic->statics) joint.static_because += (joint.static_because.empty() ? "" : "; ") + s.name + " stays " + std::to_string(s.value) + ": " + s.because;
  if (symbolic->statics.size() == sampler.symbols().size()) return joint;
  const Joint first = joint;
  take_views(joint, std::move(symbolic->graph), first);
  joint.guards = std::move(symbolic->guards);
  joint.symbols = sampler.hints();
  if (symbolic->has_steps) {
    joint.size_check = std::make_shared<exec::SizeCheck>(joint.graph, std::vector<std::string>(joint.symbols.names().begin(), joint.symbols.names().end()));
    if (!joint.size_check->holds(joint.symbols.numbers())) joint.size_check = nullptr;   // operators ask for values, or inputs are no tensors
  }
  joint.output_form = captured.body.outputs;   // with its symbols; positions as in the recording
  size_t position = 0;
  for (ir::Argument& a : joint.output_form) ir::for_each_value(a, [&](ValueId& id) { id = static_cast<ValueId>(position++); });
  for (size_t p = 0; p < joint.primals.size(); ++p) {
    const ir::TensorType& type = joint.graph.values[joint.graph.inputs[p].value].type.tensor;
    for (const size_t i : joint.primals[p].inputs) {
      joint.input_types[i].tensor.sizes = type.sizes;
      joint.input_types[i].tensor.strides = type.strides;
    }
  }
  return joint;
}

std::vector<std::string> add_symbol_inputs(ir::Graph& graph) {
  std::set<std::string> used;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    for (const auto& a : n.args) ir::collect_symbols(a, used);
    for (const auto& [key, a] : n.kwargs) ir::collect_symbols(a, used);
  });
  for (const auto& a : graph.body.outputs) ir::collect_symbols(a, used);
  std::vector<std::string> added;
  for (const std::string& name : used)
    if (!exec::SymbolSources::find(graph, {ir::Dim::symbol(name)}).ok()) added.push_back(name);
  for (const std::string& name : added) {
    // The symbol is found by the name of the input: a value that has it goes by another.
    for (ValueId id = 0; id < graph.values.size(); ++id)
      if (graph.values[id].name == name) graph.rename(id, name + "_value");
    graph.add_input(name, ir::Type::of(ir::Type::Kind::integer));
  }
  return added;
}

}  // namespace cutaway::aot
