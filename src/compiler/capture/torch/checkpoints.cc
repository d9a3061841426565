// torch.utils.checkpoint.checkpoint. What it gives and the gradients are those of the function itself, as long as computing it again would do
// nothing else: so the function is inlined, and a function with effects of its own (which happen twice) ends the graph. The reentrant form cuts the
// function out of autograd's graph; where that would show, the graph ends, too.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

uint32_t version(PyObject* fake) {
  const at::Tensor& t = unwrap_tensor(fake);
  return t.is_inference() ? 0 : static_cast<uint32_t>(t._version());
}
// A list of operators, or a function that does nothing but answer.
bool is_plain_policy(const Owners& t, Value* policy) {
  if (t.values.kind(policy) == Kind::list) return true;
  if (policy->kind != Kind::function) return false;
  static PyObject* const only_answers = polyfill_named("only_answers");
  PyObject* r = PyObject_CallOneArg(only_answers, reinterpret_cast<PyObject*>(t.values.function(policy).code));
  const bool is = r == Py_True;
  Py_XDECREF(r);
  PyErr_Clear();
  return is;
}
bool requires_grad(Value* tensor) { return unwrap_tensor(body<Tensor>(tensor).fake).requires_grad(); }

}  // namespace

TorchCalls::Watch::Watch(TorchCalls& calls)
    : calls_(calls), writes_(calls.effects.outside_count() + calls.effects.watched_writes()), random_(calls.random_nodes_), watch_(calls.effects, calls.values) {
  for (const Tensor& b : calls.values.tensor_bodies()) if (b.fake) versions_.emplace_back(b.fake, version(b.fake));
}
bool TorchCalls::Watch::has_changed_something() const { return calls_.effects.outside_count() + calls_.effects.watched_writes() != writes_; }
bool TorchCalls::Watch::has_written_tensors() const {
  for (const auto& [fake, n] : versions_) if (version(fake) != n) return true;
  for (Value* v : calls_.tensors.inputs())   // those that were met since have begun at 0
    if (PyObject* fake = body<Tensor>(v).fake; version(fake) && std::ranges::none_of(versions_, [&](const auto& b) { return b.first == fake; })) return true;
  return false;
}

Value* TorchCalls::checkpoint(Value*, const Args& args) {
  const auto refuse = [&](const std::string& why, std::string hint = {}) { stop("checkpoint", "torch.utils.checkpoint.checkpoint " + why, std::move(hint)); };
  static PyObject* const no_context = find_member("torch.utils.checkpoint", "noop_context_fn");
  if (!args.count) refuse("is called without a function");
  if (in_transform()) refuse("is called inside a function transform");
  std::vector<Keyword> rest;
  Value* contexts = nullptr;
  int reentrant = -1;
  bool preserve = true;
  for (size_t i = 0; i < args.keyword_count; ++i) {
    const auto& [key, value] = args.keywords[i];
    const auto is = [key = key](const char* name) { return PyUnicode_CompareWithASCIIString(key, name) == 0; };
    const auto flag = [&, value = value](const char* name) {
      if (!values.is_constant(value, Py_True) && !values.is_constant(value, Py_False)) refuse(std::string("is called with ") + name + " that is neither True nor False");
      return value->real == Py_True;
    };
    if (is("use_reentrant")) {
      if (!values.is_constant(value, Py_None)) reentrant = flag("use_reentrant");
    } else if (is("preserve_rng_state")) preserve = flag("preserve_rng_state");
    else if (is("early_stop")) flag("early_stop");
    else if (is("debug")) { if (flag("debug")) refuse("is called with debug=True"); }
    else if (is("context_fn")) contexts = value;
    else if (is("determinism_check")) {
      PyObject* how = values.as_constant(value);
      if (!how || !PyUnicode_Check(how) || (PyUnicode_CompareWithASCIIString(how, "default") && PyUnicode_CompareWithASCIIString(how, "none"))) refuse("is called with a determinism_check of its own");
    } else rest.push_back(args.keywords[i]);
  }
  if (reentrant < 0 && !options.fullgraph) refuse("is called without use_reentrant, which warns", "pass use_reentrant=False");
  if (reentrant < 0) reentrant = 1;
  const std::vector<Value*> positional(args.positional + 1, args.positional + args.count);
  const bool grad = c10::GradMode::is_enabled();
  if (contexts && values.force(contexts)->real != no_context) {   // it decides what is saved, which makes no difference to what is computed
    static PyObject *const selective = polyfill_named("SelectiveContext"), *const nothing = find_member("contextlib", "nullcontext");
    if (reentrant) refuse("is called with a context_fn and use_reentrant=True");
    Value* made = calls.call(contexts, {});
    if (!made) return nullptr;
    if (values.kind(made) != Kind::tuple || values.items(made).size() != 2) refuse("is called with a context_fn that does not give two contexts");
    for (Value* context : std::vector(values.items(made))) {
      PyTypeObject* type = values.type_of(context);
      const bool is_selective = reinterpret_cast<PyObject*>(type) == selective;
      if (!is_selective && reinterpret_cast<PyObject*>(type) != nothing) refuse("is called with a context_fn whose contexts may do anything");
      if (is_selective && !is_plain_policy(*this, attributes.getattr(context, "policy"))) refuse("is called with a policy that does more than compare operators");
    }
  }
  if (!reentrant && !grad) return calls.call(args[0], Args(positional, rest));
  if (reentrant) {
    if (!rest.empty()) refuse("is called with keywords for the function and use_reentrant=True");
    bool any = false;
    for (Value* a : positional) {
      if (values.kind(a) == Kind::tensor) any = any || requires_grad(a);
      else if (leaves.contains_tensor(a)) refuse("with use_reentrant=True is given tensors inside a container, whose gradients it does not see", "pass use_reentrant=False");
    }
    if (!any) refuse("with use_reentrant=True is given no tensor that requires grad, which warns", "pass use_reentrant=False");
  }
  // What computing it again would do a second time.
  const Watch watch(*this);
  const size_t effects_before = effects.effect_nodes();
  in_checkpoint_ += 1 - reentrant;
  in_reentrant_ += reentrant;
  met_reentrant_ = met_reentrant_ || reentrant;
  struct Leave { TorchCalls& c; int reentrant; ~Leave() { c.in_reentrant_ -= reentrant; c.in_checkpoint_ -= 1 - reentrant; } } const leave{*this, reentrant};
  Value* r = calls.call(args[0], Args(positional, rest));
  if (!r) return nullptr;
  if (watch.has_changed_something()) refuse("runs a function that changes something outside, which happens again when it is computed again");
  if (watch.has_written_tensors()) refuse("runs a function that writes to a tensor from outside, which happens again when it is computed again");
  if (!preserve && effects.effect_nodes() != effects_before) refuse("with preserve_rng_state=False runs a function that may draw random numbers, which are others when it is computed again");
  if (!reentrant) return r;
  // The results of the reentrant form are those of an autograd function.
  std::vector<Value*> results{r};
  if (values.kind(r) == Kind::tuple) results = values.items(r);
  bool is_other = false;
  for (Value*& v : results) {
    if (values.kind(v) != Kind::tensor) {
      if (!values.as_constant(v)) refuse("with use_reentrant=True returns tensors inside a container, which then have no gradient");
      continue;
    }
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    if (grad && (fake.is_floating_point() || fake.is_complex()) && !fake.requires_grad()) refuse("with use_reentrant=True returns a tensor that does not depend on its arguments, and that requires grad nevertheless");
    static PyObject* const view_as = PyUnicode_InternFromString("view_as");
    // An argument that is given back, and a tensor that began to require grad inside, come as views of themselves: autograd has computed them.
    if (std::find(positional.begin(), positional.end(), v) != positional.end() || (grad && fake.requires_grad() && fake.is_leaf())) {
      v = leaves.call_tensor_method(v, view_as, {v, v});
      if (!v) return nullptr;
      is_other = true;
    }
  }
  if (is_other) return values.kind(r) == Kind::tuple ? values.make_tuple(std::move(results), r->type) : results.front();
  return r;
}

void TorchCalls::note_grad_mode_question() {
  if (in_reentrant_ && frame_stack.innermost() && frame_stack.innermost()->code->file().find("/torch/autograd/") == std::string::npos) note_autograd_question("for grad mode");
}
void TorchCalls::note_autograd_question(const std::string& what) {
  if (in_reentrant_) stop("checkpoint", "a function inside a checkpoint with use_reentrant=True asks " + what + ", and the answer differs in the backward pass");
}

}  // namespace cutaway::capture
