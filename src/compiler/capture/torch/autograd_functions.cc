// torch.autograd.Function.apply. Without gradients the forward part
// of a Function is inlined. With them it is one call of the graph, which only a backend that runs Python can do: the forward part is
// interpreted on fakes for what it gives, the backward part stays the user's.
#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/core/GradMode.h>

#include <cstdint>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {
// One object a class, since `Mine.apply` is a new one each time; a function of its own, since fx writes what is torch's by its name.
// The graphs that call it hold it, and it holds the class.
PyObject* apply_of(PyObject* klass) {
  static auto* all = new std::unordered_map<PyObject*, PyObject*>;   // class -> weak reference; a class whose function lives is alive
  static PyObject* const make = polyfill_named("function_of_class");
  std::erase_if(*all, [](const auto& row) {
    const bool is_gone = PyWeakref_GET_OBJECT(row.second) == Py_None;
    if (is_gone) Py_DECREF(row.second);
    return is_gone;
  });
  if (const auto found = all->find(klass); found != all->end()) return Py_NewRef(PyWeakref_GET_OBJECT(found->second));
  PyObject* made = PyObject_CallOneArg(make, klass);
  PyObject* weak = made ? PyWeakref_NewRef(made, nullptr) : nullptr;
  if (weak) (*all)[klass] = weak;
  return made;
}
}  // namespace

Value* Leaves::call_function_apply(const Args& args) {
  static PyObject* const inlined = polyfill_named("apply_function");
  static PyObject* const interpreted = polyfill_named("trace_function");
  static PyObject* const attach = polyfill_named("attach_backward");
  for (size_t i = 1; i < args.count; ++i) values.force(args[i]);
  const auto needs_gradient = [&](Value* v, const auto& self) -> bool {   // of the tensor, or of one in a list of them
    if (values.kind(v) == Kind::tensor) {
      at::Tensor t = unwrap_tensor(body<Tensor>(v).fake);
      while (const auto* batched = at::functorch::maybeGetBatchedImpl(t)) t = at::Tensor(batched->value());
      return t.requires_grad();
    }
    bool any = false;
    if (v->kind == Kind::list || v->kind == Kind::tuple) for (Value* i : values.items(v)) any = any || self(i, self);
    return any;
  };
  torch_calls.refuse_subclasses("torch.autograd.Function.apply is called");
  // Where nothing differentiates, a rule that torch makes by itself is the forward part under vmap.
  const auto is_mapped = [&] {
    static PyObject* const name = PyUnicode_InternFromString("generate_vmap_rule");
    bool is = values.kind(args[0]) == Kind::klass && _PyType_Lookup(reinterpret_cast<PyTypeObject*>(args[0]->real), name) == Py_True && torch_calls.in_vmap_alone();
    for (size_t i = 1; i < args.count; ++i) is = is && !needs_gradient(args[i], needs_gradient);
    return is;
  };
  if (torch_calls.is_transformed(args) && !is_mapped()) stop("autograd-function", values.describe(values.force(args[0])) + ".apply is called inside a function transform, or beside torch.autograd.grad");
  bool needs_grad = false;
  for (size_t i = 1; i < args.count; ++i) needs_grad |= values.kind(args[i]) == Kind::tensor && unwrap_tensor(body<Tensor>(args[i]).fake).requires_grad();
  Value* klass = values.force(args[0]);
  const std::string called = values.describe(klass) + ".apply";
  if (!c10::GradMode::is_enabled() || !needs_grad) {
    // The forward part alone has the derivatives of its operators in forward mode, not the Function's own.
    static PyObject* const forward_mode = PyImport_ImportModule("torch.autograd.forward_ad");
    static PyObject* const level_name = PyUnicode_InternFromString("_current_level");
    Value* level = attributes.module_attribute(values.force(values.wrap_constant_object(forward_mode)), level_name);
    PyObject* number = level ? values.as_constant(values.force(level)) : nullptr;
    if (!number || !PyLong_Check(number) || PyLong_AsLong(number) >= 0) stop("autograd-function", called + " is called inside a level of forward-mode differentiation");
    Value* dirty = values.make_list({});
    std::vector<Value*> all{dirty};
    all.insert(all.end(), args.positional, args.positional + args.count);
    Value* result = calls.call_python(values.force(values.wrap_constant_object(inlined)), Args(all.data(), all.size(), args.keywords, args.keyword_count));
    // Their versions count it twice, and which of them comes back as itself is autograd's affair.
    if (!values.items(dirty).empty()) stop("autograd-function", called + " writes to tensors that it is given, and marks them as dirty");
    return result;
  }
  if (args.keyword_count || klass->kind != Kind::klass) stop("autograd-function", called + " is called with keywords");
  if (effects.may_be_read_by(klass->real)) stop("autograd-function", called + " may read what the captured code has written, which is put in place behind the graph");
  if (!options.runs_python) return torch_calls.apply_function(called, klass, args);
  PyObject* bound = apply_of(klass->real);
  if (!bound) throw std::runtime_error(called + " cannot be called by name");
  values.keep(bound);
  std::vector<ir::Argument> arguments;
  for (size_t i = 1; i < args.count; ++i) arguments.push_back(to_argument(args[i]));
  torch_calls.note_named_call();
  auto& recorder = tensors.recorder();
  const size_t before = effects.outside_count();
  recorder.begin_call(name_callable(std::string(reinterpret_cast<PyTypeObject*>(klass->real)->tp_name) + ".apply", bound, klass->real), std::move(arguments), {}, frame_stack.location());
  Value* pair = calls.call_python(values.force(values.wrap_constant_object(interpreted)), args);
  if (!pair) { recorder.cancel_call(); return nullptr; }
  Value* result = values.items(values.force(pair)).at(0);
  torch_calls.require_pure_function(called, klass, args, pair);
  real_errors.note_raising(called);   // its forward is the user's own
  if (effects.outside_count() != before || recorder.call_has_effects()) { recorder.cancel_call(); stop("autograd-function", called + " has effects besides its result"); }
  // The fakes get a node of autograd's, so that what is computed from them requires grad.
  PyObject* results = values.keep(to_python(values.kind(result) == Kind::tuple ? result : values.make_tuple({result})));
  PyObject* inputs = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count) + 1));
  PyTuple_SET_ITEM(inputs, 0, Py_NewRef(results));
  PyTuple_SET_ITEM(inputs, 1, to_python(values.items(pair).at(1)));
  for (size_t i = 1; i < args.count; ++i) PyTuple_SET_ITEM(inputs, static_cast<Py_ssize_t>(i) + 1, to_python(args[i]));
  PyObject* attached = PyObject_Call(attach, inputs, nullptr);
  if (values.kind(result) == Kind::tuple)
    for (Value* v : values.items(result))
      if (values.kind(v) != Kind::tensor) {
        recorder.cancel_call();
        Py_XDECREF(attached);
        PyErr_Clear();
        return torch_calls.apply_function(called, klass, args);   // a call by name gives the tensors among its results
      }
  if (!attached) { recorder.cancel_call(); PyErr_Clear(); stop("autograd-function", called + " returns something that is not a tensor"); }
  Py_DECREF(attached);
  std::vector<c10::IValue> flat;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i) {
    PyObject* r = PyTuple_GET_ITEM(results, i);
    if (!is_tensor_object(r)) { recorder.cancel_call(); stop("autograd-function", called + " returns something that is not a tensor"); }
    flat.emplace_back(unwrap_tensor(r));
  }
  std::vector<int32_t> returns;
  if (values.kind(result) == Kind::tuple) returns.push_back(static_cast<int32_t>(flat.size()));
  else returns.push_back(ir::Node::kSingle);
  recorder.end_call(flat, returns);
  return result;
}

}  // namespace cutaway::capture
