#include "core/trace/recorder.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/library.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>

#include "core/tensor/convert.h"
#include "core/trace/recorder/call_memo.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_fallback.h"
#include "core/trace/fake_tensor.h"
#include "core/ir/edit.h"
#include "core/trace/recorder/recorder_state.h"
#include "core/trace/shells.h"
#include "core/trace/value_checks.h"

namespace cutaway::trace {
namespace {

thread_local uint64_t failures = 0;
struct CountFailure {   // costs nothing where nothing is raised
  int before = std::uncaught_exceptions();
  ~CountFailure() { if (std::uncaught_exceptions() > before) ++failures; }
};

c10::DispatchKey key_of(Where where) { return where == Where::above_autograd ? kAboveKey : kBelowKey; }

void run_above(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  // max_pool1d reads the memory of a CPU tensor that needs no gradient, in a kernel above every key. The operator that it is made of
  // otherwise has the same result.
  if (C10_UNLIKELY(info.reads_memory) && is_fake((*stack)[stack->size() - info.argument_count].toTensor())) {
    static const auto with_indices = c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "");
    with_indices.callBoxed(stack);
    stack->pop_back();
    return;
  }
  std::optional<ValueChecks> checks;
  if (C10_UNLIKELY(!info.checking.empty())) checks.emplace(info.checking);
  // A recording below sees what the operator is made of; a backward pass inside this one, and transforms, use the history of its results.
  const auto* recording = active_recording(Where::above_autograd);
  if (active_recording(Where::below_autograd) || recording->allows_backward || recording->met_transforms) return op.callBoxed(stack);
  MemoizedCall call(info, *stack);
  if (call.answer(stack)) return;
  op.callBoxed(stack);
  call.remember(*stack);
}

void run_below(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  const CountFailure count;
  if (handles_as_fake(info, *stack)) return run_fake(op, info, stack);
  const c10::impl::ExcludeDispatchKeyGuard below(kBelowKey);
  op.callBoxed(stack);
}

// torch.tensor and its kin fill the memory of an `empty` by hand. They exclude DeferredInit and Fake meanwhile, which nothing else
// does to the former: what comes out is a constant, and the `empty` is not part of the program.
bool is_filled_by_hand() { return c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::DeferredInit); }

// Operators about autograd's own graph are made of nothing else, whatever torch says of them.
bool is_taken_apart(const OperatorInfo& info) {
  return info.is_composite && info.full_name.starts_with("aten::") && info.full_name != "aten::requires_grad_" && info.full_name != "aten::retain_grad";
}

thread_local bool shells_expected = false;   // see shells.h

// Inside a transform of torch.func, or of tensors of one that has ended, or of a class with __torch_dispatch__: what these make of the operator comes by again.
bool belongs_to_transform(Recorder::State& recording, const OperatorInfo& info, const torch::jit::Stack& stack) {
  const bool inside = !at::functorch::getDynamicLayerStack().empty();
  recording.met_transforms |= inside;
  if (inside || !(recording.met_transforms || shells_expected)) return inside;
  constexpr auto wrappers = c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Python});
  const auto wraps = [&](const at::Tensor& t) { return t.defined() && t.key_set().has_any(wrappers); };
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i) {
    if (stack[i].isTensor() && wraps(stack[i].toTensor())) return true;
    if (stack[i].isTensorList())
      for (const at::Tensor& t : stack[i].toTensorVector()) if (wraps(t)) return true;
    if (stack[i].isOptionalTensorList())
      for (const std::optional<at::Tensor>& t : stack[i].toOptionalTensorVector()) if (t && wraps(*t)) return true;
  }
  return false;
}

void above_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  auto* recording = active_recording(Where::above_autograd);
  const OperatorInfo* info = recording ? &operator_info(op) : nullptr;
  // A backward pass uses what operators keep for it: all of these must be values of the recording, and none the inside of another operator.
  if (recording && ((recording->allows_backward && is_taken_apart(*info)) || belongs_to_transform(*recording, *info, *stack))) return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kAboveKey), stack);
  const c10::impl::ExcludeDispatchKeyGuard once(kAboveKey);
  if (!recording || is_filled_by_hand()) return op.callBoxed(stack);
  const CountFailure count;
  if ((!recording->allows_backward && torch::autograd::get_current_graph_task_id() != recording->graph_task) || info->full_name == "aten::_backward") refuse_backward();
  recording->observe(op, *info, stack, run_above);
}

void below_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  // In inference mode no autograd key took a composite operator apart before it came here: do it as the backend would.
  const auto& info = operator_info(op);
  if (info.is_composite) return op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
  if (auto* recording = active_recording(Where::below_autograd)) {
    active_recording(Where::below_autograd) = nullptr;   // a meta kernel in Python may come back here
    struct Restore {
      Recorder::State* saved;
      ~Restore() { active_recording(Where::below_autograd) = saved; }
    } const restore{recording};
    return recording->observe(op, info, stack, run_below);
  }
  run_below(op, info, stack);
}

template <class F> void for_each_input(const std::vector<c10::IValue>& inputs, const std::vector<InputName>& names, F&& f) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputName name = i < names.size() ? names[i] : InputName{};
    if (name.name.empty()) name.name = "arg" + std::to_string(i);
    if (inputs[i].isTensor()) {
      if (inputs[i].toTensor().defined()) f(inputs[i].toTensor(), name);
    } else if (inputs[i].isTensorList()) {
      size_t n = 0;
      for (const at::Tensor& t : inputs[i].toTensorVector()) {
        InputName item = name;
        item.name += "_" + std::to_string(n++);
        if (t.defined()) f(t, item);
      }
    }
  }
}

}  // namespace

uint64_t failed_operators() { return failures; }
void expect_shells(bool on) { shells_expected = on; }
FailuresUncounted::FailuresUncounted() : before(failures) {}
FailuresUncounted::~FailuresUncounted() { failures = before; }

Recorder::State*& active_recording(Where where) {
  static thread_local Recorder::State* active[2] = {nullptr, nullptr};
  return active[where == Where::above_autograd ? 0 : 1];
}

namespace {
// Keeps functionalization's own checks, in-place calls on its wrappers, out of recordings. torch reads the switch once, at the first use of functionalization
// in the process, which may be the program's own (torch.func.functionalize): it is set when the library is loaded.
[[maybe_unused]] const int is_prepared = setenv("TORCH_DISABLE_FUNCTIONALIZATION_META_REFERENCE", "1", /*overwrite=*/0);
}  // namespace

Recorder::Recorder(std::vector<c10::IValue> inputs, RecordOptions options) : state_(std::make_unique<State>(std::move(options))) {
  const Where where = state_->options.where;
  for_each_input(inputs, state_->options.input_names, [&](const at::Tensor& t, InputName name) { state_->add_input(t, std::move(name)); });
  state_->outer = active_recording(where);
  state_->was_included = c10::impl::tls_is_dispatch_key_included(key_of(where));
  state_->graph_task = torch::autograd::get_current_graph_task_id();
  state_->threads = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  active_recording(where) = state_.get();
  c10::impl::tls_set_dispatch_key_included(key_of(where), true);
  // Hooks for saved tensors are the caller's: nothing is saved for good here, and what they do is no part of the program. A checkpoint inside it
  // then keeps what it would compute again, which gives the same gradients.
  state_->hooks_were_off = at::SavedTensorDefaultHooks::set_tracing(true);
  // Backward of another device would run on a thread that does not record.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

static void stop(Recorder::State& s) {
  if (active_recording(s.options.where) != &s) return;
  active_recording(s.options.where) = s.outer;
  c10::impl::tls_set_dispatch_key_included(key_of(s.options.where), s.was_included);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(s.threads);
  at::SavedTensorDefaultHooks::set_tracing(s.hooks_were_off);
}

Recorder::~Recorder() { stop(*state_); }

void Recorder::add_input(const at::Tensor& t, InputName name) { state_->add_input(t, std::move(name)); }

void Recorder::begin_call(std::string qualified_name, std::vector<ir::Argument> args, std::vector<std::pair<std::string, ir::Argument>> kwargs, ir::Location location) {
  ir::Node node;
  node.kind = ir::Node::Kind::call;
  node.target = std::move(qualified_name);
  node.args = std::move(args);
  node.kwargs = std::move(kwargs);
  if (location.is_known()) node.location = state_->graph.add_location(location);
  state_->open_call(std::move(node));
}

void Recorder::end_call(const std::vector<c10::IValue>& results, const std::vector<int32_t>& returns) {
  const SizesShown shown;
  state_->close_call(results, returns);
}

void Recorder::cancel_call() { state_->drop_call(); }
bool Recorder::call_has_effects() const {
  bool found = false;
  for (size_t i = state_->frames.size(); i-- > 1;) {   // the call's frame, and a scope that is open in it
    for (const ir::Node& n : state_->frames[i].nodes) found |= ir::has_effects(n);
    if (state_->frames[i].node.kind == ir::Node::Kind::call) break;
  }
  return found;
}
void Recorder::watch(bool errors) {
  state_->watches_errors = errors;
  state_->seen = {};
}
const Recorder::Seen& Recorder::seen() const { return state_->seen; }
size_t Recorder::node_count() const { return state_->frames.front().nodes.size(); }

void Recorder::allow_backward(bool on) { state_->allows_backward = on; }

ir::Argument Recorder::argument(const c10::IValue& v) {
  const SizesShown shown;
  return state_->write(v);
}
c10::IValue Recorder::add_number(std::string target, const std::vector<c10::IValue>& args, const std::function<c10::IValue(const std::vector<c10::IValue>&)>& compute) {
  return state_->add_number(std::move(target), args, compute);
}
void Recorder::add_check(const c10::IValue& number, std::string message) { state_->add_check(number, std::move(message)); }

const std::vector<at::Tensor>& Recorder::constants() const { return state_->constants; }

base::Result<ir::Graph> Recorder::finish(const std::vector<c10::IValue>& outputs) {
  auto& s = *state_;
  const SizesShown shown;
  stop(s);
  s.close_scope();
  if (s.frames.size() != 1)
    return base::Error{.what = "the recording ended inside the captured call " + s.frames.back().node.target, .place = s.options.graph_name};
  for (const auto& o : outputs) {
    try {
      s.graph.body.outputs.push_back(s.write(o));
    } catch (const c10::Error& e) {
      return base::Error{.what = "an output of the recorded program cannot be written down", .place = s.options.graph_name, .because = e.what_without_backtrace()};
    }
  }
  if (s.options.where == Where::above_autograd) s.check_inputs();
  if (s.error) return *s.error;
  if (s.options.where == Where::above_autograd)
    if (const auto* hooked = s.hooked_tensor())
      return base::Error{.what = "a hook was registered on a tensor of " + ir::Type::of(tensor::type_of(*hooked)).text() + " inside the recorded program, which is refused", .place = s.options.graph_name,
                         .because = "a graph has no operator for it, and without it gradients would be wrong", .hint = "register the hook on an input or an output, outside"};
  s.graph.body.nodes = std::move(s.frames.front().nodes);   // after the outputs: reading one may have added a node
  debug::count(s.options.sink, "trace", "recorded_operators", static_cast<int64_t>(ir::count_ops(s.graph)));
  return std::move(s.graph);
}

base::Result<ir::Graph> record(const Callable& f, std::vector<c10::IValue> inputs, RecordOptions options, std::vector<at::Tensor>* constants) {
  const debug::Phase phase(options.sink, "trace", "record");
  Recorder recorder(inputs, std::move(options));
  const auto outputs = f(inputs);
  auto graph = recorder.finish(outputs);
  if (constants) *constants = recorder.constants();
  return graph;
}

}  // namespace cutaway::trace

TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&cutaway::trace::below_fallback>()); }
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&cutaway::trace::above_fallback>()); }
