#include "compiler/aot/specialize.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>

namespace cutaway::aot {
namespace {

template <class Is> bool has_node(const ir::Graph& graph, Is is) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found |= is(n.state); });
  return found;
}

// Forward-mode derivatives belong to operators; no graph that was cut in two has them.
bool has_tangent(const std::vector<c10::IValue>& inputs) {
  return std::ranges::any_of(inputs, [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() && v.toTensor()._fw_grad(0).defined(); });
}

bool needs_gradients(const std::vector<c10::IValue>& inputs) {
  return at::GradMode::is_enabled() && std::ranges::any_of(inputs, [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() && v.toTensor().requires_grad(); });
}

}  // namespace

Specialized::Specialized(ir::Graph captured, FunctionOptions options, size_t limit)
    : captured_(std::move(captured)), options_(std::move(options)), limit_(limit),
      has_floats_(std::ranges::any_of(captured_.inputs, [&](const ir::Input& i) { return captured_.value(i.value).type.kind == ir::Type::Kind::floating; })),
      turns_grad_on_(has_node(captured_, [](const ir::RegionState& s) { return s.grad_enabled == true; })),
      makes_inference_tensors_(has_node(captured_, [](const ir::RegionState& s) { return s.inference_mode.has_value(); })) {}

std::vector<std::shared_ptr<Function>> Specialized::functions() const {
  const std::lock_guard lock(mutex_);
  return functions_;
}

base::Result<std::shared_ptr<Function>> Specialized::find(const std::vector<c10::IValue>& inputs) {
  {
    std::shared_ptr<Function> last;
    {
      const std::lock_guard lock(mutex_);
      last = last_;
    }
    if (last && last->accepts(inputs)) return last;
  }
  const auto known = functions();
  for (const auto& f : known)
    if (f->accepts(inputs)) {
      const std::lock_guard lock(mutex_);
      return last_ = f;
    }
  if (known.size() >= limit_)
    return base::Error{.what = "inputs of a new kind, after " + std::to_string(known.size()) + " others", .place = captured_.name, .because = "each kind of inputs is differentiated on its own", .hint = "pad the inputs to fewer sizes"};
  CUTAWAY_TRY_ASSIGN(std::shared_ptr<Function> made, Function::make(captured_, inputs, options_));
  const std::lock_guard lock(mutex_);
  functions_.push_back(made);
  return last_ = made;
}

std::vector<c10::IValue> Specialized::run_eagerly(std::vector<c10::IValue>& inputs, exec::RunFailure* failure) {
  if (options_.program) {
    auto outputs = options_.program(inputs);
    if (options_.program_end) options_.program_end();
    return outputs;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!eager_) {
      auto program = exec::Program::prepare(captured_);
      TORCH_CHECK_NOT_IMPLEMENTED(program.ok(), program.error().text());
      eager_ = std::move(program).value();
    }
  }
  try {
    return eager_->run(inputs);
  } catch (...) {
    if (failure) failure->node = exec::Program::error_position();
    throw;
  }
}

// Null for inputs of a kind that is refused.
std::shared_ptr<Function> Specialized::find_or_say(const std::vector<c10::IValue>& inputs) {
  constexpr int kTries = 4;   // each kind is recorded before it is refused
  if (refusals_ >= kTries) {
    const auto known = functions();
    const auto accepted = std::ranges::find_if(known, [&](const auto& f) { return f->accepts(inputs); });
    return accepted == known.end() ? nullptr : *accepted;
  }
  std::string refused;
  try {
    auto f = find(inputs);
    if (f.ok()) return std::move(f).value();
    refused = f.error().text();
  } catch (const c10::Error& e) {   // if it is the program's, its operators raise it, too
    refused = e.what_without_backtrace();
  }
  ++refusals_;
  debug::decide(options_.sink, "aot", "operator by operator", refused, {{"graph", captured_.name}});
  return nullptr;
}

std::vector<c10::IValue> Specialized::run(std::vector<c10::IValue>& inputs, exec::RunFailure* failure) {
  if (failure) *failure = {};
  if (!at::SavedTensorDefaultHooks::get_tls_state().stack.empty() && at::GradMode::is_enabled()) return run_eagerly(inputs, failure);
  if (has_tangent(inputs)) return run_eagerly(inputs, failure);
  if (torch::autograd::AnomalyMode::is_enabled() && at::GradMode::is_enabled()) return run_eagerly(inputs, failure);   // it names the operator whose gradient is no number
  // Nothing to differentiate, and nobody who compiles: the operators themselves keep views, bases and versions as they are.
  if (options_.runs_refused && !options_.compile && !needs_gradients(inputs)) return run_eagerly(inputs, failure);
  if (makes_inference_tensors_ || (turns_grad_on_ && !at::GradMode::is_enabled())) return run_eagerly(inputs, failure);
  // A number that is another one at every call is not worth a backward of its own each time.
  constexpr size_t kFloatKinds = 4;
  if (has_floats_ && functions().size() >= kFloatKinds && std::ranges::none_of(functions(), [&](const auto& known) { return known->accepts(inputs); })) {
    if (!said_.exchange(true)) debug::decide(options_.sink, "aot", "operator by operator", "a float among the inputs takes ever other values, and each would be differentiated on its own", {{"graph", captured_.name}});
    return run_eagerly(inputs, failure);
  }
  std::shared_ptr<Function> function = options_.runs_refused ? find_or_say(inputs) : nullptr;
  if (!function && options_.runs_refused) return run_eagerly(inputs, failure);
  if (!function) {
    auto f = find(inputs);
    TORCH_CHECK_NOT_IMPLEMENTED(f.ok(), f.error().text());
    function = std::move(f).value();
  }
  if (function->would_pass_none(inputs)) return run_eagerly(inputs, failure);
  return function->run_accepted(inputs, failure);
}

}  // namespace cutaway::aot
