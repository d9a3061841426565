#include "compiler/capture/torch/tensor_trace.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>

#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

TensorTrace::State TensorTrace::current_state() {
  State s{c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(), {}, at::autocast::is_autocast_cache_enabled(), 0};
  for (const auto d : kAutocastDevices) s.autocast.emplace_back(at::autocast::is_autocast_enabled(d), static_cast<int>(at::autocast::get_autocast_dtype(d)));
  s.nesting = at::autocast::increment_nesting() - 1;
  at::autocast::decrement_nesting();
  return s;
}

TensorTrace::TensorTrace(const Owners& owners) : Owners(owners), start_(current_state()), keys_(c10::impl::tls_local_dispatch_key_set()) {
  mode_.emplace();
  fakes_.emplace();
  trace::RecordOptions options;
  options.graph_name = "captured";
  options.location = [this] { return leaves.is_bare() ? frame_stack.location() : ir::Location{}; };
  options.keeps_numbers = this->options.fullgraph;
  options.wrapped_number = wrapped_symbolic;
  recorder_ = std::make_unique<trace::Recorder>(std::vector<c10::IValue>{}, std::move(options));
}

bool TensorTrace::saved_hooks_are_disabled() { return !at::SavedTensorDefaultHooks::is_enabled(); }

void TensorTrace::begin_branch() {
  trace::RecordOptions options;
  options.graph_name = "branch";
  options.location = [this] { return leaves.is_bare() ? frame_stack.location() : ir::Location{}; };
  options.wrapped_number = wrapped_symbolic;   // one from outside is refused
  branches_.push_back(std::make_unique<trace::Recorder>(std::vector<c10::IValue>{}, std::move(options)));
}

void TensorTrace::enter_inference(bool on) { inference_.push_back(std::make_unique<c10::InferenceMode>(on)); }
bool TensorTrace::leave_inference() {
  if (inference_.empty()) return false;
  inference_.pop_back();
  return true;
}

void TensorTrace::restore_state() {
  while (!inference_.empty()) inference_.pop_back();   // the last one first
  c10::GradMode::set_enabled(start_.grad);
  for (size_t i = 0; i < start_.autocast.size(); ++i) {
    at::autocast::set_autocast_enabled(kAutocastDevices[i], start_.autocast[i].first);
    at::autocast::set_autocast_dtype(kAutocastDevices[i], static_cast<at::ScalarType>(start_.autocast[i].second));
  }
  at::autocast::set_autocast_cache_enabled(start_.cache);
  int depth = current_state().nesting;   // deeper where a block was entered, less deep where one from before a break was left
  for (; depth > start_.nesting; --depth) at::autocast::decrement_nesting();
  for (; depth < start_.nesting; ++depth) at::autocast::increment_nesting();
  switches_.put_back();
  at::autocast::clear_cache();   // it may hold casts of fakes
}

void TensorTrace::end() {
  if (!mode_) return;
  while (!branches_.empty()) branches_.pop_back();
  recorder_.reset();
  restore_state();
  fakes_.reset();
  mode_.reset();
  // An inference mode that a break left open brings back the keys of its beginning, the recorder's among them.
  c10::impl::_force_tls_local_dispatch_key_set(keys_);
}
TensorTrace::~TensorTrace() { end(); }

void TensorTrace::add_guard(Value* v) {
  if (!v->source || v->source->kind == SourceKind::constant) return;
  guards::Guard g;
  g.source = v->source;
  g.kind = GuardKind::tensor;
  g.operand = guards::ObjectRef::borrow(reinterpret_cast<PyObject*>(v->type));
  g.tensor = std::make_shared<const guards::TensorSpec>(guards::describe_tensor(v->real));
  if (Frame* f = frame_stack.innermost()) g.place = {f->code->file(), f->code->instructions()[f->pc].line};
  guards.add(std::move(g));
}

void TensorTrace::add_input(Value* v, Tensor& body) {
  const at::Tensor& real = unwrap_tensor(v->real);
  if (is_shell_class(v->type)) {
    torch_calls.add_shell(v, body);
    add_guard(v);
    return;
  }
  if (trace::is_fake(real)) stop("fake-tensor", "a fake tensor is read from outside");
  if (real.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::BatchedNestedTensor}))) {
    v->kind = Kind::lazy;
    stop("torch-machinery", "a tensor inside a function transform is read");
  }
  at::Tensor fake;
  try {
    const c10::InferenceMode as_it_is(real.is_inference());   // it was made before the program's modes
    frames::SizeLog* log = frames::size_log();
    const std::vector<int64_t> sizes = log && v->source ? log->sizes_of(*v->source, v->real, v->type == known().parameter || v->type == known().buffer) : std::vector<int64_t>();
    fake = sizes.empty() ? fakes_->make(real) : trace::make_fake(real, sizes);
  } catch (const c10::Error& e) {
    v->kind = Kind::lazy;
    stop("tensor-layout", e.what_without_backtrace());
  }
  add_guard(v);
  const KnownTypes& k = known();
  std::string text = v->source ? v->source->text() : "constant";
  if (text == "self") text = "self_";   // in Python the graph is a method: the name is taken
  trace::InputName name{text, v->type == k.parameter ? ir::InputKind::parameter : v->type == k.buffer ? ir::InputKind::buffer : ir::InputKind::user, {}};
  if (name.kind != ir::InputKind::user) name.qualified_name = text;
  body.input = static_cast<int>(inputs_.size());
  inputs_.push_back(v);
  recorder_->add_input(fake, std::move(name));
  body.fake = values.keep(wrap_tensor(fake));
  values.bind_fake(v, body.fake);
}

}  // namespace cutaway::capture
