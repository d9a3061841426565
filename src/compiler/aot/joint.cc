#include "compiler/aot/joint.h"

#include <ATen/SequenceNumber.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/logical_and.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler/aot/captured_facts.h"
#include "compiler/aot/functional.h"
#include "compiler/aot/simplify.h"
#include "core/exec/interpreter.h"
#include "core/exec/node_place.h"
#include "core/exec/region_state.h"
#include "core/ir/edit.h"
#include "core/tensor/convert.h"
#include "core/trace/autograd_function.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/node_pointer.h"
#include "core/trace/recorder.h"
#include "core/trace/value_checks.h"

namespace cutaway::aot {
namespace {

using base::Error;
using base::Result;
using c10::IValue;

// A graph does not depend on the autocast in which it happens to be compiled: what it needs is in its scopes.
exec::StateSetting without_autocast() {
  exec::StateSetting off;
  for (const auto device : {c10::kCPU, c10::kCUDA, c10::kXPU})
    if (at::autocast::is_autocast_enabled(device)) off.autocast.push_back({device, false, at::autocast::get_autocast_dtype(device), true});
  return off;
}

// Hands gradients on. Inputs come to the program through it, so that it may write to them: autograd forbids that to a leaf.
struct PassOn final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override { return std::move(grads); }
  std::string name() const override { return "PassOn"; }
};

// Of functional tensors torch's quantile does not ask whether all of q lie between 0 and 1. The graph does.
void check_probabilities(const IValue& given) {
  constexpr const char* kWhat = "quantile() q values must be in the range [0, 1]";
  if (!given.isTensor()) {
    TORCH_CHECK(given.toDouble() >= 0 && given.toDouble() <= 1, kWhat);
    return;
  }
  const at::NoGradGuard quiet;
  const at::Tensor& q = given.toTensor();
  at::_assert_async(at::logical_and(q.ge(0), q.le(1)).all(), kWhat);
}

at::Tensor fake_like(const at::Tensor& t, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(c10::DispatchKeySet(c10::DispatchKey::Functionalize).add(trace::kBelowKey));
  return trace::make_fake(at::empty_strided(sizes, strides, at::TensorOptions().dtype(t.scalar_type()).device(at::kMeta)), t.device());
}
std::vector<int64_t> row_major(at::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

class JointRecording {
 public:
  JointRecording(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) : captured_(captured), examples_(examples), options_(options) {}

  /// `merged`: first inputs of the groups that share a storage and become one primal. Tells through `again` which groups must be merged.
  Result<Joint> run(const std::set<size_t>& merged, std::set<size_t>& again) {
    if (examples_.size() != captured_.inputs.size())
      return Error{.what = std::to_string(examples_.size()) + " example inputs for a graph that has " + std::to_string(captured_.inputs.size()), .place = captured_.name};
    if (!options_.program) {
      CUTAWAY_TRY_ASSIGN(program_, prepare());
    }
    CUTAWAY_TRY(make_primals(merged));
    trace::prepare_functionalization();
    try {
      return record(again);
    } catch (const c10::Error& e) {
      return refusal(e.what_without_backtrace());
    }
  }

 private:
  struct Wrapped { at::Tensor fake, leaf, given; trace::NodePointer history; };

  /// The captured graph with its outputs laid flat, ready to run.
  Result<exec::Program> prepare() {
    ir::Graph flat = captured_;
    joint_.output_form = captured_.body.outputs;
    flat.body.outputs.clear();
    for (ir::Argument& a : joint_.output_form)
      ir::for_each_value(a, [&](ir::ValueId& id) {
        flat.body.outputs.emplace_back(ir::ValueRef{id});
        id = static_cast<ir::ValueId>(flat.body.outputs.size() - 1);
      });
    std::string unfit;
    ir::for_each_node(captured_.body, [&](const ir::Node& n) { if (n.target == "aten.requires_grad_" || n.target == "aten.retain_grad" || n.target == "cutaway.set_switch") unfit = n.target; });
    if (!unfit.empty()) return Error{.what = unfit + " inside the program is refused", .place = captured_.name, .because = "it sets state around operators, which a graph that was recorded once and cut in two does not keep in place"};
    locations_ = locations_by_position(captured_);
    return exec::Program::prepare(flat);
  }

  base::Status make_primals(const std::set<size_t>& merged) {
    std::vector<at::Tensor> tensors(examples_.size());
    joint_.frozen_inputs.resize(examples_.size());
    primal_of_.assign(examples_.size(), kNone);
    for (size_t i = 0; i < examples_.size(); ++i) {
      ir::Type type = ir::Type::of(ir::Type::Kind::opaque);
      if (examples_[i].isTensor() && examples_[i].toTensor().defined()) {
        tensors[i] = examples_[i].toTensor();
        type = ir::Type::of(tensor::type_of(tensors[i]));
      } else if (examples_[i].isList() || examples_[i].isTuple() || examples_[i].isGenericDict()) {
        return Error{.what = "the input %" + captured_.value(captured_.inputs[i].value).name + " is a list: only tensors and plain values can be inputs", .place = captured_.name};
      } else {
        joint_.frozen_inputs[i] = examples_[i];
      }
      joint_.input_types.push_back(std::move(type));
    }
    std::vector<at::Tensor> fakes, plain(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) plain[i] = tensors[i].detach();   // the wrappers will require grad, not the fakes inside
    try {
      fakes = trace::make_fakes(plain);
    } catch (const c10::Error& e) {
      return Error{.what = "an input cannot be traced", .place = captured_.name, .because = e.what_without_backtrace()};
    }
    std::unordered_map<const c10::TensorImpl*, size_t> by_tensor;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].defined()) continue;
      auto& group = sharing_[storage_of(tensors[i])];
      if (auto it = by_tensor.find(tensors[i].unsafeGetTensorImpl()); it != by_tensor.end()) {   // the same tensor twice
        joint_.primals[it->second].inputs.push_back(i);
        primal_of_[i] = it->second;
        continue;
      }
      if (!group.empty() && merged.contains(group.front())) {
        const size_t p = primal_of_[group.front()];
        joint_.primals[p].inputs.push_back(i);
        primal_of_[i] = p;
      } else {
        Primal primal;
        primal.inputs = {i};
        primal.requires_grad = tensors[i].requires_grad() && at::GradMode::is_enabled();
        primal.is_base = merged.contains(i);
        at::Tensor fake = fakes[i];
        if (primal.is_base) {
          const auto count = static_cast<int64_t>(tensors[i].storage().nbytes() / tensors[i].itemsize());
          fake = fake_like(tensors[i], {count}, {1});
        }
        primal_of_[i] = joint_.primals.size();
        joint_.primals.push_back(std::move(primal));
        wrapped_.push_back({fake, {}, {}, {}});
      }
      by_tensor.emplace(tensors[i].unsafeGetTensorImpl(), primal_of_[i]);
      group.push_back(i);
    }
    shapes_ = std::move(tensors);
    return {};
  }

  Result<Joint> record(std::set<size_t>& again) {
    const debug::Phase phase(options_.sink, "aot", "joint");
    struct End {
      const std::function<void()>& end;
      ~End() { if (end) end(); }
    } const end{options_.program_end};
    const exec::StateScope autocast(without_autocast());
    const trace::FakeMode fakes;
    trace::RecordOptions record;
    record.where = trace::Where::below_autograd;
    record.graph_name = options_.name;
    record.location = [this] { return here(); };
    record.sink = options_.sink;
    std::vector<IValue> given;
    for (size_t p = 0; p < wrapped_.size(); ++p) {
      const ir::Input& input = captured_.inputs[joint_.primals[p].inputs.front()];
      std::string name = captured_.value(input.value).name;
      if (joint_.primals[p].is_base) name += "_base";
      record.input_names.push_back({std::move(name), input.kind, input.qualified_name});
      given.emplace_back(wrapped_[p].fake);
    }
    std::optional<trace::Recorder> recorder;
    recorder.emplace(std::move(given), std::move(record));
    std::vector<IValue> written;
    size_t first_of_backward = 0;
    {
      const Functionalized functional;
      wrap_primals();
      std::vector<IValue> outputs = run_forward();
      CUTAWAY_TRY(check_leaves());
      CUTAWAY_TRY(read_mutations(again));
      if (!again.empty()) return Joint{};
      CUTAWAY_TRY(read_outputs(outputs));
      for (const auto& value : result_values_) written.emplace_back(value);
      first_of_backward = recorder->node_count();
      CUTAWAY_TRY(run_backward(*recorder, written));
    }
    CUTAWAY_TRY_ASSIGN(joint_.graph, recorder->finish(written));
    CUTAWAY_TRY(check_randomness(first_of_backward));
    joint_.constants = recorder->constants();
    if (options_.program) {
      CUTAWAY_TRY(check_constants());
    }
    recorder.reset();
    for (const auto& [output, steps] : views_) {
      const OutputRule& rule = joint_.outputs[output];
      const at::Tensor& base = rule.from == OutputRule::From::view_of_primal ? wrapped_[rule.index].fake : bases_.at(rule.index);
      CUTAWAY_TRY_ASSIGN(joint_.outputs[output].view, record_view(base, steps, options_.name + "_view_" + std::to_string(output)));
    }
    std::stable_partition(joint_.graph.inputs.begin() + static_cast<std::ptrdiff_t>(wrapped_.size()), joint_.graph.inputs.end(),
                          [](const ir::Input& i) { return i.kind == ir::InputKind::constant; });
    simplify(joint_.graph);
    CUTAWAY_TRY(check_functional());
    return std::move(joint_);
  }

  void wrap_primals() {
    const bool may_write = options_.program || writes_to_arguments(captured_);
    for (size_t p = 0; p < wrapped_.size(); ++p) {
      Wrapped& w = wrapped_[p];
      w.leaf = w.given = wrap(w.fake);
      if (!joint_.primals[p].requires_grad) continue;
      w.leaf.set_requires_grad(true);
      if (!may_write) continue;
      w.given = wrap(w.fake);
      auto pass = trace::make_node<PassOn>();
      pass->set_next_edges(torch::autograd::collect_next_edges(w.leaf));
      torch::autograd::set_history(w.given, pass);
      w.history = pass;
    }
  }

  std::vector<IValue> run_forward() {
    std::vector<IValue> inputs;
    for (size_t i = 0; i < examples_.size(); ++i) {
      if (primal_of_[i] == kNone) { inputs.push_back(examples_[i]); continue; }
      const size_t p = primal_of_[i];
      if (!joint_.primals[p].is_base) { inputs.emplace_back(wrapped_[p].given); continue; }
      inputs.emplace_back(wrapped_[p].given.as_strided(shapes_[i].sizes(), shapes_[i].strides(), shapes_[i].storage_offset()));
    }
    given_ = inputs;
    if (options_.program) {
      auto outputs = options_.program(inputs);
      for (size_t o = 0; o < outputs.size(); ++o) joint_.output_form.emplace_back(ir::ValueRef{static_cast<ir::ValueId>(o)});
      return outputs;
    }
    exec::Hooks hooks;
    std::optional<trace::ValueChecks> checks;
    hooks.before = [&, this](size_t position, const ir::Node& n, const std::vector<IValue>& args) {
      position_ = position;
      checks.reset();
      if (const auto checking = checking_operator(n.target); !checking.empty()) {
        check_probabilities(args[1]);
        checks.emplace(checking);
      }
      starts_.push_back(at::sequence_number::peek());
    };
    auto outputs = program_->run(inputs, {.hooks = &hooks});
    position_ = kNone;
    return outputs;
  }

  /// A program that has run backward left gradients where nobody would find them.
  base::Status check_leaves() const {
    for (size_t p = 0; p < wrapped_.size(); ++p)
      if (joint_.primals[p].requires_grad && wrapped_[p].leaf.grad().defined())
        return Error{.what = "the program runs backward itself, which is refused", .place = captured_.name, .because = "what it adds to the gradients of its inputs would be lost"};
    return {};
  }
  /// Gradients flow to inputs only.
  base::Status check_constants() const {
    bool found = false;
    for (const at::Tensor& c : joint_.constants) {
      if (!c.requires_grad()) continue;
      found = true;
      if (wrapper_of(c.grad()) || trace::is_fake(c.grad())) c.mutable_grad().reset();
    }
    if (!found || !at::GradMode::is_enabled()) return {};
    return Error{.what = "the program uses a tensor that requires grad and is no input of it, which is refused", .place = captured_.name, .because = "its gradient would be lost", .hint = "make it an argument, or a parameter of the module"};
  }

  base::Status read_mutations(std::set<size_t>& again) {
    for (size_t p = 0; p < wrapped_.size(); ++p) {
      Primal& primal = joint_.primals[p];
      const at::Tensor& given = wrapped_[p].given;
      const at::Tensor now = inner_of(given);
      after_forward_.push_back(now);
      auto* wrapper = wrapper_of(given);
      const std::string name = "%" + captured_.value(captured_.inputs[primal.inputs.front()].value).name;
      if (wrapper->was_storage_changed() || wrapper->was_inductor_storage_resized())
        return Error{.what = "the program gives the input " + name + " another storage (set_, resize_), which is refused", .place = captured_.name};
      primal.writes_data = wrapper->has_data_mutation();
      primal.writes_metadata = wrapper->has_metadata_mutation();
      if (!primal.writes_metadata && (now.sizes() != wrapped_[p].fake.sizes() || now.strides() != wrapped_[p].fake.strides()))
        return Error{.what = "the program resizes the input " + name + ", which is refused", .place = captured_.name};
      if (primal.is_base)
        for (const size_t i : primal.inputs)
          if (wrapper_of(given_[i].toTensor())->has_metadata_mutation())
            return Error{.what = "the program changes the shape of the input " + name + " in place, which is refused", .place = captured_.name, .because = "the input shares its storage with another one"};
      if (!primal.writes_data && !primal.writes_metadata) continue;
      // An autograd function writes without gradients and gives the input a history afterwards.
      primal.writes_under_no_grad = wrapper->are_all_mutations_under_no_grad_or_inference_mode() && given.grad_fn() == wrapped_[p].history;
      primal.requires_grad_after = primal.writes_data && given.requires_grad() && !primal.writes_under_no_grad;
      if (primal.writes_metadata) {
        primal.new_sizes.assign(now.sizes().begin(), now.sizes().end());
        primal.new_strides.assign(now.strides().begin(), now.strides().end());
        primal.new_offset = now.storage_offset();
      }
      if (primal.writes_data) add_result({ForwardResult::For::mutated_primal, p, primal.requires_grad_after}, given, now);
      if (primal.is_base) continue;
      const auto& group = sharing_.at(storage_of(shapes_[primal.inputs.front()]));
      if (group.size() < 2) continue;
      for (const size_t i : group) {
        const at::Tensor& t = shapes_[i];
        if (primal.writes_metadata || t.scalar_type() != shapes_[group.front()].scalar_type() || t.is_conj() || t.is_neg() || (t.requires_grad() && at::GradMode::is_enabled()))
          return Error{.what = "the inputs " + name + " and %" + captured_.value(captured_.inputs[i == primal.inputs.front() ? group.front() : i].value).name + " share a storage, and the program writes to it",
                       .place = captured_.name, .because = "this is possible only for inputs of one dtype that need no gradients and keep their shapes", .hint = "clone one of them before the call"};
      }
      again.insert(group.front());
    }
    return {};
  }

  size_t add_result(ForwardResult result, const at::Tensor& wrapper, const at::Tensor& inner) {
    joint_.results.push_back(result);
    result_wrappers_.push_back(wrapper);
    result_values_.push_back(inner);
    return joint_.results.size() - 1;
  }

  base::Status read_outputs(const std::vector<IValue>& outputs) {
    std::unordered_map<const c10::StorageImpl*, size_t> primals;
    std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> sharing;
    for (size_t p = 0; p < wrapped_.size(); ++p) primals.emplace(storage_of(wrapped_[p].given), p);
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].isTensor() && wrapper_of(outputs[o].toTensor())) sharing[storage_of(outputs[o].toTensor())].push_back(o);
    std::unordered_map<const c10::TensorImpl*, size_t> seen;
    std::unordered_map<const c10::StorageImpl*, size_t> base_results;
    for (size_t o = 0; o < outputs.size(); ++o) {
      OutputRule rule;
      if (!outputs[o].isTensor() || !outputs[o].toTensor().defined()) {
        rule.from = OutputRule::From::literal;
        rule.literal = outputs[o].isTensor() ? IValue() : outputs[o];
        joint_.outputs.push_back(std::move(rule));
        continue;
      }
      const at::Tensor& out = outputs[o].toTensor();
      rule.requires_grad = out.requires_grad();
      if (const auto [earlier, fresh] = seen.emplace(out.unsafeGetTensorImpl(), o); !fresh) {
        rule = joint_.outputs[earlier->second];
        if (rule.from != OutputRule::From::primal) rule = {OutputRule::From::output, earlier->second, rule.requires_grad, {}, {}};
      } else if (const auto p = wrapper_of(out) ? primals.find(storage_of(out)) : primals.end(); p != primals.end()) {
        CUTAWAY_TRY(from_primal(rule, o, out, p->second));
      } else if (wrapper_of(out) && sharing.at(storage_of(out)).size() > 1 && any_requires_grad(outputs, sharing.at(storage_of(out)))) {
        CUTAWAY_TRY(from_shared(rule, o, out, base_results));
      } else {
        rule.index = add_result({ForwardResult::For::output, o, rule.requires_grad}, out, inner_of(out));
      }
      joint_.outputs.push_back(std::move(rule));
    }
    return {};
  }

  static bool any_requires_grad(const std::vector<IValue>& outputs, const std::vector<size_t>& which) {
    return std::any_of(which.begin(), which.end(), [&](size_t o) { return outputs[o].toTensor().requires_grad(); });
  }

  base::Status from_primal(OutputRule& rule, size_t o, const at::Tensor& out, size_t p) {
    const Primal& primal = joint_.primals[p];
    for (const size_t i : primal.inputs)
      if (out.is_same(given_[i].toTensor())) {
        rule.from = OutputRule::From::primal;
        rule.index = i;
        return {};
      }
    if (primal.writes_metadata)
      return Error{.what = "output " + std::to_string(o) + " is a view of the input %" + captured_.value(captured_.inputs[primal.inputs.front()].value).name + ", whose shape the program changes in place: refused", .place = captured_.name};
    CUTAWAY_TRY(check_views_alone(o, out, wrapped_[p].given));
    inner_of(out);
    rule.from = OutputRule::From::view_of_primal;
    rule.index = p;
    views_.emplace_back(o, wrapper_of(out)->view_metas());
    return {};
  }

  /// An output that is rebuilt by views has their gradients, and no others.
  base::Status check_views_alone(size_t o, const at::Tensor& out, const at::Tensor& base) const {
    if (!out.requires_grad() || !trace::has_autograd_function(out, base)) return {};
    return Error{.what = "output " + std::to_string(o) + " shares its storage with an input or another output, and an autograd function with a backward of its own made it: refused", .place = captured_.name, .hint = "clone it before it is returned"};
  }

  /// One of several outputs that share a storage, and gradients are wanted: the tensor they are views of leaves the forward graph, and they
  /// are made from it where autograd sees it. Otherwise a write to one would not reach the gradients of the others.
  base::Status from_shared(OutputRule& rule, size_t o, const at::Tensor& out, std::unordered_map<const c10::StorageImpl*, size_t>& base_results) {
    const at::Tensor base = out.is_view() ? at::Tensor(out._base()) : out;
    CUTAWAY_TRY(check_views_alone(o, out, base));
    const auto* wrapper = wrapper_of(base);
    if (!wrapper || storage_of(base) != storage_of(out))
      return Error{.what = "output " + std::to_string(o) + " shares its storage with another output in a way that cannot be rebuilt", .place = captured_.name, .because = "it was made a view outside of autograd"};
    const at::Tensor inner = inner_of(base);
    inner_of(out);
    const ViewSteps& whole = wrapper_of(out)->view_metas();
    const ViewSteps& first = wrapper->view_metas();
    if (whole.size() < first.size() || !std::equal(first.begin(), first.end(), whole.begin()))
      return Error{.what = "output " + std::to_string(o) + " shares its storage with another output in a way that cannot be rebuilt", .place = captured_.name};
    const auto [known, fresh] = base_results.emplace(storage_of(out), 0);
    if (fresh) {
      known->second = add_result({ForwardResult::For::base, o, base.requires_grad()}, base, inner);
    } else if (!result_wrappers_[known->second].is_same(base)) {
      return Error{.what = "outputs " + std::to_string(joint_.results[known->second].index) + " and " + std::to_string(o) + " share a storage in a way that cannot be rebuilt", .place = captured_.name,
                   .because = "autograd holds them to be views of different tensors"};
    }
    rule.from = OutputRule::From::view_of_result;
    rule.index = known->second;
    bases_.emplace(known->second, inner);
    views_.emplace_back(o, ViewSteps(whole.begin() + static_cast<std::ptrdiff_t>(first.size()), whole.end()));
    return {};
  }

  base::Status run_backward(trace::Recorder& recorder, std::vector<IValue>& written) {
    std::vector<at::Tensor> roots, tangents, leaves, fakes;
    for (size_t r = 0; r < joint_.results.size(); ++r)
      if (joint_.results[r].requires_grad) joint_.tangents.push_back(r);
    if (joint_.tangents.empty()) return {};
    joint_.has_backward = true;
    for (const Wrapped& w : wrapped_) fakes.push_back(w.fake);
    trace::require_backward_device(fakes);
    for (const size_t r : joint_.tangents) {
      const at::Tensor& value = result_values_[r];
      // At run time a tangent that is laid out differently is copied: the graph was recorded for this layout.
      const at::Tensor fake = fake_like(value, value.sizes(), value.is_non_overlapping_and_dense() ? value.strides().vec() : row_major(value.sizes()));
      recorder.add_input(fake, {"tangent" + std::to_string(tangents.size())});
      roots.push_back(result_wrappers_[r]);
      tangents.push_back(wrap(fake));
    }
    for (size_t p = 0; p < wrapped_.size(); ++p)
      if (joint_.primals[p].requires_grad) leaves.push_back(wrapped_[p].leaf);
    if (leaves.empty()) return Error{.what = "an output requires grad and no input does", .place = captured_.name};
    std::vector<at::Tensor> gradients;
    if (options_.accumulates) {
      torch::autograd::backward(roots, tangents);
      for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.grad());
    } else {
      gradients = torch::autograd::grad(roots, leaves, tangents, std::nullopt, false, /*allow_unused=*/true);
    }
    for (const at::Tensor& g : gradients) written.push_back(g.defined() ? IValue(inner_of(g)) : IValue());
    return check_backward(tangents);
  }

  /// What forward gives is read before backward runs: a backward of the program's own must leave it as it is.
  base::Status check_backward(const std::vector<at::Tensor>& tangents) const {
    bool writes = false;
    for (size_t p = 0; p < wrapped_.size(); ++p) writes = writes || !inner_of(wrapped_[p].given).is_same(after_forward_[p]);
    for (size_t r = 0; r < result_values_.size(); ++r) writes = writes || !inner_of(result_wrappers_[r]).is_same(result_values_[r]);
    for (const at::Tensor& t : tangents) writes = writes || wrapper_of(t)->has_data_mutation();
    if (!writes) return {};
    return Error{.what = "the backward of this program writes to an input, an output or a gradient that it gets, which is refused", .place = captured_.name, .because = "forward and backward are two graphs without effects on each other"};
  }
  /// In eager they are drawn when backward runs, or drawn again from the state that forward had (a checkpoint); a graph would draw others.
  base::Status check_randomness(size_t first_of_backward) const {
    for (size_t i = first_of_backward; i < joint_.graph.body.nodes.size(); ++i) {
      const ir::Node& n = joint_.graph.body.nodes[i];
      if (const auto* schema = exec::dispatcher_schemas().find(n.target); schema && schema->is_random)
        return exec::at_node(Error{.what = n.target + " in the backward of a program draws random numbers: refused"}, joint_.graph, n);
    }
    return {};
  }

  base::Status check_functional() {
    for (const ir::Node& n : joint_.graph.body.nodes) {
      const auto* schema = exec::dispatcher_schemas().find(n.target);
      if (schema && std::any_of(schema->args.begin(), schema->args.end(), [](const ir::Schema::Arg& a) { return a.is_written; }))
        return exec::at_node(Error{.what = n.target + " writes to an argument and has no functional form that torch knows: refused"}, joint_.graph, n);
    }
    return {};
  }

  ir::Location here() const {
    if (options_.program) return options_.location ? options_.location() : ir::Location{};
    size_t position = position_;
    if (position == kNone) {   // in backward: the operator that made the autograd node which runs
      const auto node = torch::autograd::get_current_node();
      if (!node || starts_.empty()) return {};
      const auto it = std::upper_bound(starts_.begin(), starts_.end(), node->sequence_nr());
      if (it == starts_.begin() || node->sequence_nr() >= last_sequence()) return {};
      position = static_cast<size_t>(it - starts_.begin()) - 1;
    }
    const ir::LocationId id = position < locations_.size() ? locations_[position] : ir::kNoLocation;
    return id == ir::kNoLocation ? ir::Location{} : captured_.locations[id];
  }
  static uint64_t last_sequence() { return at::sequence_number::peek(); }

  Error refusal(const std::string& because) const {
    if (!program_) return {.what = "the program cannot be differentiated ahead of time", .place = captured_.name, .because = because};
    const int64_t position = exec::Program::error_position();
    const ir::Node* node = position < 0 ? nullptr : exec::op_at(program_->graph(), static_cast<size_t>(position));
    Error e{.what = node ? node->target + " cannot be differentiated ahead of time" : "the backward of this graph cannot be recorded", .place = captured_.name, .because = because};
    return node ? exec::at_node(std::move(e), program_->graph(), *node) : e;
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);
  const ir::Graph& captured_;
  const std::vector<IValue>& examples_;
  const JointOptions& options_;
  Joint joint_;
  std::optional<exec::Program> program_;          // the captured graph; none when options_.program runs
  std::vector<Wrapped> wrapped_;                  // by primal
  std::vector<size_t> primal_of_;                 // by captured input; kNone for what is no tensor
  std::vector<at::Tensor> shapes_;                // the example tensors
  std::vector<IValue> given_;                     // what the program got
  std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> sharing_;   // distinct inputs of a storage
  std::vector<at::Tensor> result_wrappers_, result_values_;
  std::vector<at::Tensor> after_forward_;         // by primal: what the wrapper held when forward had run
  std::map<size_t, at::Tensor> bases_;            // by forward result: the fake that views are made of
  std::vector<std::pair<size_t, ViewSteps>> views_;
  std::vector<ir::LocationId> locations_;         // by position of the captured operator
  std::vector<uint64_t> starts_;                  // by position: the first sequence number of autograd nodes that it made
  size_t position_ = kNone;
};

}  // namespace

base::Result<Joint> record_joint(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) {
  std::set<size_t> merged, again;
  CUTAWAY_TRY_ASSIGN(Joint joint, JointRecording(captured, examples, options).run(merged, again));
  while (!again.empty()) {   // inputs that share a storage are written to: once more, with one base for them
    if (std::includes(merged.begin(), merged.end(), again.begin(), again.end())) return Error{.what = "inputs that share a storage cannot be told apart", .place = captured.name};
    merged.insert(again.begin(), again.end());
    again.clear();
    CUTAWAY_TRY_ASSIGN(joint, JointRecording(captured, examples, options).run(merged, again));
  }
  return joint;
}

}  // namespace cutaway::aot
