#include "compiler/aot/joint_recording.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/logical_and.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

#include "compiler/aot/captured_facts.h"
#include "core/trace/kernel_errors.h"
#include "core/trace/value_checks.h"

namespace cutaway::aot {
namespace {

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

// A functional form writes to no memory: it raises none of the errors about elements that share it, and gives each element a value of its own.
void check_memory(const ir::Node& n, const std::vector<IValue>& args) {
  const auto name = ir::split_op_name(n.target);
  const auto op = name ? c10::Dispatcher::singleton().findSchema({name->name, name->overload}) : std::nullopt;
  TORCH_CHECK_NOT_IMPLEMENTED(!op || !trace::writes_shared_memory(*op, args), n.target, " writes to elements that share memory with each other, or with what it reads");
}

bool writes_to_first(const ir::Node& n) {
  const auto* schema = exec::dispatcher_schemas().find(n.target);
  return schema && !schema->args.empty() && schema->args[0].is_written;
}
std::vector<std::pair<at::Tensor, int64_t>> versions_of(const IValue& list) {
  std::vector<std::pair<at::Tensor, int64_t>> all;
  if (!list.isTensorList()) return all;
  for (const at::Tensor& t : list.toTensorVector())
    if (t.defined() && !t.is_inference()) all.emplace_back(t, t._version());
  return all;
}

}  // namespace

Result<exec::Program> JointRecording::prepare() {
  ir::Graph flat = captured_;
  joint_.output_form = captured_.body.outputs;
  flat.body.outputs.clear();
  for (ir::Argument& a : joint_.output_form)
    ir::for_each_value(a, [&](ir::ValueId& id) {
      flat.body.outputs.emplace_back(ir::ValueRef{id});
      id = static_cast<ir::ValueId>(flat.body.outputs.size() - 1);
    });
  std::string unfit;
  const auto detaches = [&](const ir::Node& n) {
    const auto* of = n.target == "aten.detach_" && !n.args.empty() ? n.args[0].as<ir::ValueRef>() : nullptr;
    return of && captured_.value(of->id).type.tensor.requires_grad;
  };
  ir::for_each_node(captured_.body, [&](const ir::Node& n) { if (n.target == "aten.requires_grad_" || n.target == "aten.retain_grad" || n.target == "aten.set_data" || n.target.starts_with("cutaway.") || detaches(n)) unfit = n.target; });
  if (!unfit.empty()) return Error{.what = unfit + " inside the program is refused", .place = captured_.name, .because = "it sets state around operators, which a graph that was recorded once and cut in two does not keep in place"};
  if (takes_data(captured_) && writes_to_arguments(captured_))
    return Error{.what = "x.data in a program that writes to tensors is refused", .place = captured_.name, .because = "a write to it is none to x as far as autograd knows, and a copy back would be one"};
  ir::for_each_node(flat.body, [](ir::Node& n) { if (n.target == "aten.data") n.target = "aten.detach"; });
  locations_ = locations_by_position(captured_);
  return exec::Program::prepare(flat);
}

void JointRecording::check_writes() {
  if (options_.program || !writes_to_arguments(captured_) || std::any_of(joint_.primals.begin(), joint_.primals.end(), [](const Primal& p) { return p.is_base; })) return;
  std::vector<IValue> inputs = examples_;
  std::vector<at::Tensor> given(joint_.primals.size());
  for (size_t i = 0; i < examples_.size(); ++i) {
    const size_t p = primal_of_[i];
    if (p == kNone) continue;
    if (!given[p].defined()) {
      given[p] = fake_like(shapes_[i], shapes_[i].sizes(), shapes_[i].strides());
      if (joint_.primals[p].requires_grad) pass_on(given[p], given[p].detach().set_requires_grad(true));
    }
    inputs[i] = given[p];
  }
  program_->run(inputs);
}

std::vector<IValue> JointRecording::run_forward() {
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
  std::vector<std::pair<at::Tensor, int64_t>> listed;
  hooks.before = [&, this](size_t position, const ir::Node& n, const std::vector<IValue>& args) {
    position_ = position;
    checks.reset();
    check_memory(n, args);
    if (const auto checking = checking_operator(n.target); !checking.empty()) {
      check_probabilities(args[1]);
      checks.emplace(checking);
    }
    starts_.push_back(at::sequence_number::peek());
    listed = n.target.starts_with("aten._foreach_") && writes_to_first(n) ? versions_of(args[0]) : decltype(listed)();
  };
  // Eager writes to one tensor of the list after the other, and each write counts. The functional form of the whole list counts none.
  hooks.after = [&](size_t, const ir::Node&, std::vector<IValue>&) {
    for (const auto& [t, version] : listed)
      if (t._version() == version) t.unsafeGetTensorImpl()->bump_version();
    listed.clear();
  };
  auto outputs = program_->run(inputs, {.hooks = &hooks});
  position_ = kNone;
  return outputs;
}

ir::LocationId JointRecording::line() const {
  size_t position = position_;
  if (position == kNone) {   // in backward: the operator that made the autograd node which runs
    const auto node = torch::autograd::get_current_node();
    if (!node || starts_.empty()) return ir::kNoLocation;
    const auto it = std::upper_bound(starts_.begin(), starts_.end(), node->sequence_nr());
    if (it == starts_.begin() || node->sequence_nr() >= at::sequence_number::peek()) return ir::kNoLocation;
    position = static_cast<size_t>(it - starts_.begin()) - 1;
  }
  return position < locations_.size() ? locations_[position] : ir::kNoLocation;
}

ir::Location JointRecording::here() const {
  if (options_.program) return options_.location ? options_.location() : ir::Location{};
  const ir::LocationId id = line();
  return id == ir::kNoLocation ? ir::Location{} : captured_.locations[id];
}

}  // namespace cutaway::aot
