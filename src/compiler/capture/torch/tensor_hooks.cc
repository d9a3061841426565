// Hooks on tensors: a call of the graph that registers them. A hook that the captured code made is made anew by each run, around what it closes over: cells from outside,
// constants, objects from outside, tensors of the graph.
#include <cstdint>
#include <cstring>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

// (0, cell) from outside, (1, value) in a new cell, (2, None) a tensor of the graph in a new cell
PyObject* cell_form(int what, PyObject* value) { return Py_BuildValue("(iO)", what, value); }

}  // namespace

// A function of the tensor and of `kept` that registers the hook; null where it cannot be made again.
PyObject* TorchCalls::hook_maker(Value* hook, const char* method, std::vector<Value*>& kept) {
  static PyObject *const plain = polyfill_named("registers_hook"), *const closure_of = polyfill_named("registers_closure"), *const writes = polyfill_named("writes_to_cells");
  const auto outside = [&](Value* v) -> PyObject* {
    values.force(v);
    if (!v->real || !v->source) return nullptr;
    guards.add(v->source, GuardKind::id, v->real);
    return v->real;
  };
  const auto fixed = [&](Value* v) -> PyObject* {
    PyObject* c = values.as_constant(v);
    return c ? c : v->kind == Kind::tensor ? nullptr : outside(v);
  };
  const auto registers = [&](PyObject* real, bool is_new = false) { return real ? PyObject_CallFunction(plain, "OsO", real, method, is_new ? Py_True : Py_False) : nullptr; };
  values.force(hook);
  switch (hook->kind) {
    case Kind::method: {
      PyObject *function = fixed(body<Method>(hook).function), *self = fixed(body<Method>(hook).self);
      static PyObject* const bound = polyfill_named("registers_method");
      return function && self && PyCallable_Check(function) ? PyObject_CallFunction(bound, "OOs", function, self, method) : nullptr;
    }
    case Kind::partial: {
      if (hook->real && hook->source) return registers(outside(hook));
      Partial& p = body<Partial>(hook);
      PyObject* parts = values.keep(PyTuple_New(static_cast<Py_ssize_t>(p.args.size()) + 1));
      PyObject* keywords = values.keep(PyDict_New());
      PyObject* function = fixed(p.function);
      if (!function) return nullptr;
      PyTuple_SET_ITEM(parts, 0, Py_NewRef(function));
      for (size_t i = 0; i < p.args.size(); ++i) {
        PyObject* x = fixed(p.args[i]);
        if (!x) return nullptr;
        PyTuple_SET_ITEM(parts, static_cast<Py_ssize_t>(i) + 1, Py_NewRef(x));
      }
      for (auto& [name, v] : p.keywords) {
        PyObject* x = fixed(v);
        if (!x) return nullptr;
        PyDict_SetItem(keywords, name, x);
      }
      PyObject* made = PyObject_Call(reinterpret_cast<PyObject*>(known().partial), parts, keywords);
      if (!made) { PyErr_Clear(); return nullptr; }
      return registers(values.keep(made), true);
    }
    case Kind::object: case Kind::builtin: return registers(outside(hook));
    case Kind::function: break;
    default: return nullptr;
  }
  if (hook->real) return registers(outside(hook));
  const Function& f = values.function(hook);
  PyObject* defaults = f.defaults ? values.as_constant(f.defaults) : Py_None;
  if (!f.globals_real || !defaults || f.keyword_defaults || (f.attributes && mappings.dict_size(f.attributes)) || (f.name && f.name != f.code->co_name)) return nullptr;
  PyObject* cells = values.keep(PyTuple_New(static_cast<Py_ssize_t>(f.closure.size())));
  bool has_new = false;
  for (size_t i = 0; i < f.closure.size(); ++i) {
    Value* cell = values.force(f.closure[i]);
    PyObject* form = nullptr;
    if (cell->real) {
      if (PyObject* real = outside(cell)) form = cell_form(0, real);
    } else if (Value* contents = body<Cell>(cell).contents) {
      has_new = true;
      if (values.kind(contents) == Kind::tensor) {
        kept.push_back(contents);
        form = cell_form(2, Py_None);
      } else if (PyObject* x = fixed(contents)) {
        form = cell_form(1, x);
      }
      hook_cells_.emplace_back(cell, contents);
    }
    if (!form) return nullptr;
    PyTuple_SET_ITEM(cells, static_cast<Py_ssize_t>(i), form);
  }
  if (has_new) {   // who else has the cell would have to see what the hook writes
    PyObject* r = PyObject_CallOneArg(writes, reinterpret_cast<PyObject*>(f.code));
    const bool is = !r || r == Py_True;
    Py_XDECREF(r);
    PyErr_Clear();
    if (is) return nullptr;
  }
  return PyObject_CallFunction(closure_of, "sOOOOO", method, f.code, f.globals_real, f.qualname, defaults, cells);
}

Value* TorchCalls::register_hook(Value* tensor, Value* hook, const char* method) {
  refuse_subclasses("a hook is registered");
  note_autograd_question("for a hook on a tensor");
  const auto refuse = [&](const char* why) { stop("tensor-hook", std::string("Tensor.") + method + "() is called " + why); };
  const bool is_outside = tensor->real && tensor->source;
  if (is_transformed({tensor})) refuse("inside a transform, or beside torch.autograd.grad()");
  if (class_data.has_handles()) refuse("beside other hooks whose handles the captured code makes: all are numbered in one row");
  if (!unwrap_tensor(body<Tensor>(tensor).fake).requires_grad()) refuse("on a tensor that does not require grad");
  if (std::strcmp(method, "register_hook") != 0 && (!is_outside || !is_leaf(tensor))) refuse("on a tensor that the captured code made");
  if (options.runs_python) {   // a backend that differentiates the graph has another tensor in its place
    if (is_outside) refuse("on a tensor from outside, which keeps the hook");
    require_pure("tensor-hook", "a hook on a tensor", hook, {gradient_like(tensor)});
  }
  std::vector<Value*> used{tensor};
  PyObject* call = hook_maker(hook, method, used);
  if (!call) { PyErr_Clear(); refuse("with a function that the captured code made, and that keeps something of its own"); }
  values.keep(call);
  if (is_outside) {
    effects.note_outside_write();
    real_errors.note_first_change();   // the frame must not begin again: the tensor would get a second one
  }
  effects.note_effect_node();
  if (!options.runs_python) {
    call_named("cutaway.register_hook", call, used, {}, {});
    return values.new_value(Kind::opaque, ClassData::handle_class());
  }
  has_named_ = true;
  auto& recorder = tensors.recorder();
  std::vector<ir::Argument> arguments;
  for (Value* v : used) arguments.push_back(recorder.argument(unwrap_tensor(body<Tensor>(v).fake)));
  recorder.begin_call(leaves.name_callable("cutaway.register_hook", call), std::move(arguments), {}, frame_stack.location());
  recorder.end_call({}, {});
  return values.new_value(Kind::opaque, ClassData::handle_class());
}

}  // namespace cutaway::capture
