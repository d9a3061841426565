// Tensors that begin to require grad inside the program, what is asked about autograd's graph, and torch.autograd.grad. A graph runs above autograd,
// so these are operators like others: aten.requires_grad_ and aten.retain_grad exist, and the operators that a backward pass runs are recorded where it is.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <unordered_set>

#include "compiler/bytecode/code.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/guards/source.h"
#include "compiler/guards/tensor_object.h"
#include "core/trace/shells.h"

namespace cutaway::capture {

TorchCalls::~TorchCalls() {
  leave_transforms();
  if (met_shells_) trace::expect_shells(false);
}

bool TorchCalls::call_function(Value* f, const Args& args, Value** result) {
  using Handler = Value* (TorchCalls::*)(Value*, const Args&);
  static const auto* const table = [] {
    auto* all = new std::unordered_map<PyObject*, Handler>;
    const auto add = [&](const char* module, const char* name, Handler handler) {
      PyObject* m = PyImport_ImportModule(module);
      PyObject* o = m ? PyObject_GetAttrString(m, name) : nullptr;
      PyErr_Clear();
      if (o) (*all)[o] = handler;   // held for ever
      Py_XDECREF(m);
    };
    add("torch.utils.checkpoint", "checkpoint", &TorchCalls::checkpoint);
    add("torch.autograd", "grad", &TorchCalls::autograd_grad);
    add("torch", "cond", &TorchCalls::cond);
    add("cutaway._polyfills", "switch_overriding", &TorchCalls::switch_overriding);
    add("cutaway._polyfills", "gradient_leaves", &TorchCalls::gradient_leaves);
    add("cutaway._polyfills", "gradient_layout", &TorchCalls::gradient_layout);
    if (PyObject* own = find_member("torch", "Tensor.__torch_function__.__func__")) (*all)[own] = &TorchCalls::tensor_torch_function;
    if (PyObject* enter = find_member("torch.autograd.profiler", "record_function.__enter__")) (*all)[enter] = &TorchCalls::backward_hook;
    if (PyObject* leave = find_member("torch.autograd.profiler", "record_function.__exit__")) (*all)[leave] = &TorchCalls::backward_hook;   // both are open sites, too
    if (PyObject* hooks = PyImport_ImportModule("torch.utils.hooks"))
      if (PyObject* klass = PyObject_GetAttrString(hooks, "BackwardHook"))
        for (const char* name : {"setup_input_hook", "setup_output_hook"})
          if (PyObject* o = PyObject_GetAttrString(klass, name)) (*all)[o] = &TorchCalls::backward_hook;
    add("torch._higher_order_ops.while_loop", "while_loop", &TorchCalls::while_loop);
    if (PyObject* scan = find_member("torch._higher_order_ops.scan", "ScanOp.__call__")) (*all)[scan] = &TorchCalls::scan;
    if (PyObject* map = find_member("torch._higher_order_ops.map", "MapImpl.__call__")) (*all)[map] = &TorchCalls::map;
    add("torch._higher_order_ops.scan", "scan", &TorchCalls::call_whole);
    add("torch._higher_order_ops.map", "map", &TorchCalls::call_whole);
    add("torch._higher_order_ops.associative_scan", "associative_scan", &TorchCalls::call_whole);
    add("torch.nn.attention.flex_attention", "flex_attention", &TorchCalls::call_whole);
    add("torch._functorch.predispatch", "lazy_load_decompositions", &TorchCalls::load_decompositions);
    return all;
  }();
  const auto it = table->find(f->real);
  if (it == table->end()) return false;
  const bool of_overriding = it->second == &TorchCalls::switch_overriding || it->second == &TorchCalls::tensor_torch_function;
  if (!of_overriding) refuse_subclasses(values.describe(f) + " is called");
  const bool is_ours = of_overriding || it->second == &TorchCalls::load_decompositions;   // no mode hears of it
  if (in_mode() && !is_ours) stop("function-mode", values.describe(f) + " is called inside a TorchFunctionMode");
  *result = (this->*it->second)(f, args);
  return true;
}

namespace {
const c10::OperatorHandle& operator_named(const char* name) {
  static auto* const all = new std::unordered_map<std::string, c10::OperatorHandle>;
  auto it = all->find(name);
  if (it == all->end()) it = all->emplace(name, c10::Dispatcher::singleton().findSchemaOrThrow(name, "")).first;
  return it->second;
}
}  // namespace

bool TorchCalls::is_leaf(Value* v) {
  const Tensor& b = body<Tensor>(v);
  const at::Tensor& fake = unwrap_tensor(b.fake);
  if (!fake.requires_grad()) return true;   // the program may have called detach_()
  if (b.input < 0 || !v->real || !v->source || v->type == known().parameter || !unwrap_tensor(v->real).requires_grad()) return fake.is_leaf();
  Value* asked = values.force(values.wrap(unwrap_tensor(v->real).is_leaf() ? Py_True : Py_False, guards.sources().of(v->source, SourceKind::tensor_is_leaf)));
  return values.is_constant(asked, Py_True) && fake.is_leaf();   // the program may have written to it
}

Value* TorchCalls::grad_fn(Value* v) {
  if (!unwrap_tensor(body<Tensor>(v).fake).requires_grad() || is_leaf(v)) return values.none();
  // Only the question whether there is one has an answer: the node itself is made when the graph runs.
  const Frame* f = frame_stack.innermost();
  const auto& code = f->code->instructions();
  const auto name = [&](size_t i) { return i < code.size() ? std::string_view(bytecode::op_name(code[i].op)) : std::string_view(); };
  size_t next = f->pc + 1;
  while (name(next) == "CACHE") ++next;
  const bool asks = name(next).find("NONE") != std::string_view::npos || (name(next) == "LOAD_CONST" && name(next + 1) == "IS_OP");
  if (!asks) stop("tensor-attribute", "the attribute grad_fn of a tensor is read");
  return values.new_value(Kind::opaque, &PyBaseObject_Type);
}

Value* TorchCalls::set_requires_grad(Value* v, bool wanted) {
  Tensor& b = body<Tensor>(v);
  const at::Tensor& fake = unwrap_tensor(b.fake);
  if (!wanted || b.input >= 0 || !fake.is_leaf()) note_autograd_question("whether a tensor requires grad");
  if (is_shell(v) && v->real) stop("requires-grad", "requires_grad of a tensor of a class with __torch_dispatch__ is set");
  if (in_transform() || is_wrapper(fake) || is_shell(v)) {   // allowed only to the transform itself; torch knows
    PyObject* r = PyObject_CallMethod(body<Tensor>(v).fake, "requires_grad_", "O", wanted ? Py_True : Py_False);
    if (!r) return leaves.leaf_raised("Tensor.requires_grad_");
    Py_DECREF(r);
    return v;
  }
  if (fake.requires_grad() == wanted) return v;
  if (!wanted && !is_leaf(v)) stop("requires-grad", "Tensor.requires_grad_(False) is called on a tensor that autograd has computed");
  if (wanted && !at::isFloatingType(fake.scalar_type()) && !at::isComplexType(fake.scalar_type()))
    return exceptions.raise(PyExc_RuntimeError, "only Tensors of floating point dtype can require gradients"), exceptions.doubt("Tensor.requires_grad_");
  if (wanted && b.input >= 0 && v->real && unwrap_tensor(v->real).requires_grad() && !unwrap_tensor(v->real).is_leaf())
    stop("requires-grad", "Tensor.requires_grad_() is called on a tensor that autograd has computed and that was detached since");
  if (wanted && fake.is_inference() && !c10::InferenceMode::is_enabled()) stop("requires-grad", "Tensor.requires_grad_() is called on an inference tensor outside of inference mode");
  auto& recorder = tensors.recorder();
  recorder.begin_call("Tensor.requires_grad_", {recorder.argument(fake), ir::Argument(wanted)}, {}, frame_stack.location());
  at::Tensor t = fake;
  operator_named("aten::requires_grad_").typed<at::Tensor&(at::Tensor&, bool)>().call(t, wanted);
  effects.note_effect_node();
  if (b.input >= 0) real_errors.note_change("Tensor.requires_grad_");
  recorder.end_call({c10::IValue(fake)}, {ir::Node::kSingle});
  return v;
}

bool TorchCalls::set_data(Value* v, Value* x) {
  const at::Tensor &fake = unwrap_tensor(body<Tensor>(v).fake), &data = unwrap_tensor(body<Tensor>(x).fake);
  if (in_transform() || all_bare_ || is_wrapper(fake) || is_wrapper(data) || is_shell(v) || is_shell(x)) stop("tensor-attribute-store", "the data of a tensor is replaced inside a function transform, or by that of a tensor with __torch_dispatch__");
  if (v == x) return true;
  if (!v->real && !fake.is_leaf()) stop("tensor-attribute-store", "the data of a tensor is replaced that autograd has computed");
  if (v->real && !is_leaf(v)) stop("tensor-attribute-store", "the data of a tensor is replaced that autograd has computed");
  auto& recorder = tensors.recorder();
  recorder.begin_call("torch.ops.aten.set_data.default", {recorder.argument(fake), recorder.argument(data)}, {}, frame_stack.location());
  at::Tensor t = fake;
  try {
    operator_named("aten::set_data").typed<void(at::Tensor&, const at::Tensor&)>().call(t, data);
  } catch (const c10::Error& e) {
    recorder.cancel_call();
    stop("tensor-attribute-store", std::string("the data of a tensor is replaced by other data that does not fit: ") + e.what_without_backtrace());
  }
  effects.note_effect_node();
  if (body<Tensor>(v).input >= 0) real_errors.note_change("Tensor.data");
  recorder.end_call({}, {});
  return true;
}

void TorchCalls::make_all_bare() {
  all_bare_ = true;
  tensors.recorder().allow_backward(true);
}

bool TorchCalls::call_with_tensor_factor(const std::string& name, const Args& args, Value** result) {
  const bool one = name == "Tensor.addcdiv_", many = name == "torch._foreach_addcdiv_";
  if (!one && !many) return false;
  Value* factor = many && args.count == 4 ? args[3] : nullptr;
  for (size_t i = 0; i < args.keyword_count; ++i) if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "value") == 0) factor = args.keywords[i].second;
  if (!factor || values.kind(factor) != Kind::tensor) return false;
  *result = calls.call_python(values.force(builtins.own_function(many ? "foreach_addcdiv_" : "addcdiv_")), args);
  return true;
}

Value* TorchCalls::retain_grad(Value* v) {
  note_autograd_question("for the gradient of a tensor");
  const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
  if (!fake.requires_grad() || fake.is_inference()) stop("requires-grad", "Tensor.retain_grad() is called on a tensor that does not require grad");
  if (is_leaf(v)) return values.none();
  if (all_bare_) stop("requires-grad", "Tensor.retain_grad() is called, and torch.autograd.grad(), which would add to what the tensor keeps");
  // A backend of Python's would differentiate the graph by its own means, and lose it.
  if (options.runs_python || in_transform() || is_wrapper(fake)) stop("requires-grad", "Tensor.retain_grad() is called");
  auto& recorder = tensors.recorder();
  recorder.begin_call("Tensor.retain_grad", {recorder.argument(fake)}, {}, frame_stack.location());
  at::Tensor t = fake;
  operator_named("aten::retain_grad").typed<void(at::Tensor&)>().call(t);
  effects.note_effect_node();
  recorder.end_call({}, {});
  return values.none();
}

void TorchCalls::require_plain_leaves(const char* id, const char* what) {
  for (Value* v : tensors.inputs()) {
    if (!unwrap_tensor(body<Tensor>(v).fake).requires_grad()) continue;
    if (!is_leaf(v)) stop(id, std::string(what) + " is called, and a tensor from outside was computed by autograd");
    if (!v->real || !v->source) continue;
    Value* hooks = values.wrap(guards::has_gradient_hooks(unwrap_tensor(v->real)) ? Py_True : Py_False, guards.sources().of(v->source, SourceKind::tensor_has_hooks));
    if (!values.is_constant(hooks, Py_False)) stop(id, std::string(what) + " is called, and a tensor from outside has hooks");
  }
}

// The engine runs on the fakes, and the recorder writes down what it runs. That is the whole of it only where every tensor from outside is the
// beginning of its history.
Value* TorchCalls::autograd_grad(Value* f, const Args& args) {
  auto& recorder = tensors.recorder();
  require_plain_leaves("autograd-grad", "torch.autograd.grad()");
  note_autograd_question("for gradients");
  if (met_reentrant_) stop("autograd-grad", "torch.autograd.grad() is called after a checkpoint with use_reentrant=True, which does not allow it");
  if (!all_bare_ && !in_transform()) throw RestartBare{};
  recorder.allow_backward(true);
  struct Off { trace::Recorder& r; bool on; ~Off() { r.allow_backward(on); } } const off{recorder, all_bare_};
  return run_bare(f->real, "torch.autograd.grad", args);
}

// What a backward pass from these tensors arrives at: leaves that require grad, in the order in which they are met.
Value* TorchCalls::gradient_leaves(Value*, const Args& args) {
  require_plain_leaves("backward", "Tensor.backward()");
  if (in_transform() || in_checkpoint_ || in_reentrant_) stop("backward", "Tensor.backward() is called inside a function transform or a checkpoint");
  // Once more with bare operators these would end the graph where they are.
  const auto refuse = [&](const std::string& what) { stop("backward", "Tensor.backward() is called, and " + what); };
  if (has_named_) refuse("functions of autograd or hooks of the program's own have a part in it");
  for (const Tensor& b : values.tensor_bodies()) if (b.fake && unwrap_tensor(b.fake).retains_grad()) refuse("a tensor that the captured code made keeps its gradient");
  std::vector<torch::autograd::Node*> todo;
  for (Value* v : std::vector(values.items(values.force(args[0])))) {
    if (values.kind(v) != Kind::tensor) stop("backward", "Tensor.backward() is called on something that is not a tensor");
    const at::Tensor& t = unwrap_tensor(body<Tensor>(v).fake);
    if (t.requires_grad()) todo.push_back(torch::autograd::impl::gradient_edge(t).function.get());
  }
  std::unordered_set<torch::autograd::Node*> seen(todo.begin(), todo.end());
  std::vector<Value*> found;
  for (size_t i = 0; i < todo.size(); ++i) {
    if (todo[i]->name() == "KeptByCallerBackward") refuse("a region of the graph (torch.cond, scan) has a part in it");
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(todo[i])) {
      Value* v = values.make_tensor(values.keep(wrap_tensor(leaf->variable)));
      if (v->type != known().tensor && v->type != known().parameter) stop("backward", "Tensor.backward() is called, and gives a gradient to a tensor of a class derived from Tensor");
      found.push_back(v);
    }
    for (const torch::autograd::Edge& e : todo[i]->next_edges())
      if (e.function && seen.insert(e.function.get()).second) todo.push_back(e.function.get());
  }
  return values.make_list(std::move(found));
}

// As torch decides: a new gradient is kept as it is where it has the layout of its tensor and nobody else has its memory; else it is copied into that layout.
Value* TorchCalls::gradient_layout(Value*, const Args& args) {
  const at::Tensor &leaf = unwrap_tensor(body<Tensor>(values.force(args[0])).fake), &gradient = unwrap_tensor(body<Tensor>(values.force(args[1])).fake);
  if (gradient.layout() != at::kStrided || leaf.layout() != at::kStrided) stop("backward", "Tensor.backward() is called, and a gradient is sparse");
  const c10::StorageImpl* memory = gradient.storage().unsafeGetStorageImpl();
  bool is_own = values.is_constant(args[2], Py_False) && torch::autograd::utils::obeys_layout_contract(gradient, leaf) && gradient.nbytes() == gradient.storage().nbytes();   // no part of something larger
  for (const Tensor& b : values.tensor_bodies())
    is_own = is_own && (!b.fake || b.fake == body<Tensor>(args[1]).fake || !unwrap_tensor(b.fake).has_storage() || unwrap_tensor(b.fake).storage().unsafeGetStorageImpl() != memory);
  if (is_own) return values.text("kept");
  return values.text(leaf.is_contiguous() || !leaf.is_non_overlapping_and_dense() ? "contiguous" : "as the leaf");
}

}  // namespace cutaway::capture
