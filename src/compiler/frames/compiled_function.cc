#include "compiler/frames/compiled_function.h"

#include <cstddef>
#include <new>
#include <structmember.h>

#include "compiler/frames/python_frame.h"

namespace cutaway::frames {
namespace {

struct CompiledFunction {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* target;
  PyObject* dict;
  PyObject* weak_references;
  std::shared_ptr<Session> session;   // empty: a disabled function
};

PyObject* call_wrapper(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  if (!f->session) {
    Disabled off;
    HookScope hidden(HookScope::Frames::hidden);
    return PyObject_Vectorcall(f->target, args, nargsf, kwnames);
  }
  const std::shared_ptr<Session> session = f->session;   // the call may drop the function
  return call_compiled(session, f->target, args, nargsf, kwnames);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  Py_VISIT(f->target);
  Py_VISIT(f->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  Py_CLEAR(f->target);
  Py_CLEAR(f->dict);
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  if (f->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  f->session.~shared_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* descriptor_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* repr(PyObject* self) {
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  return PyUnicode_FromFormat(f->session ? "<compiled %R>" : "<not compiled: %R>", f->target);
}

// What was not copied at the beginning is the target's: __defaults__, attributes set later.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  auto* f = reinterpret_cast<CompiledFunction*>(self);
  if (!f->target) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(f->target, name);
}

// Copying a function gives the function.
PyObject* deepcopy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef methods[] = {{"__deepcopy__", deepcopy, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)}, {Py_tp_descr_get, reinterpret_cast<void*>(descriptor_get)}, {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)}, {Py_tp_methods, methods}, {Py_tp_members, members}, {Py_tp_getset, getset}, {0, nullptr},
};
PyType_Spec spec = {"cutaway.CompiledFunction", sizeof(CompiledFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// As functools.update_wrapper: name, documentation and attributes of the target, and the target itself as __wrapped__.
bool take_identity(PyObject* made, PyObject* target) {
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__"}) {
    PyObject* value = PyObject_GetAttrString(target, name);
    if (!value) { PyErr_Clear(); continue; }
    const int set = PyObject_SetAttrString(made, name, value);
    Py_DECREF(value);
    if (set < 0) PyErr_Clear();
  }
  if (PyFunction_Check(target)) {
    PyObject* attributes = reinterpret_cast<PyFunctionObject*>(target)->func_dict;
    PyObject* own = attributes ? PyObject_GenericGetDict(made, nullptr) : nullptr;
    if (own) {
      if (PyDict_Update(own, attributes) < 0) PyErr_Clear();
      Py_DECREF(own);
    }
  }
  return PyObject_SetAttrString(made, "__wrapped__", target) == 0;
}

PyObject* make_wrapper(PyObject* target, std::shared_ptr<Session> session) {
  PyTypeObject* type = compiled_function_type();
  if (!type) return nullptr;
  auto* f = reinterpret_cast<CompiledFunction*>(type->tp_alloc(type, 0));
  if (!f) return nullptr;
  f->vectorcall = &call_wrapper;
  f->target = Py_NewRef(target);
  new (&f->session) std::shared_ptr<Session>(std::move(session));
  PyObject* self = reinterpret_cast<PyObject*>(f);
  if (!take_identity(self, target)) { Py_DECREF(self); return nullptr; }
  return self;
}

}  // namespace

PyTypeObject* compiled_function_type() {
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

PyObject* make_compiled_function(PyObject* target, std::shared_ptr<Session> session) { return make_wrapper(target, std::move(session)); }
PyObject* make_disabled_function(PyObject* target) { return make_wrapper(target, nullptr); }

PyObject* compiled_target(PyObject* o) {
  return Py_TYPE(o) == compiled_function_type() && reinterpret_cast<CompiledFunction*>(o)->session ? reinterpret_cast<CompiledFunction*>(o)->target : nullptr;
}

}  // namespace cutaway::frames
