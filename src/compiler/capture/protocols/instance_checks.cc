// isinstance and issubclass: classes answer by themselves, ABCs by their registry, what is the user's own is not run.
#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

using guards::ObjectRef;

// A metaclass of the program's that answers in its own way: asked by interpretation. False where it has no say.
bool Attributes::ask_metaclass(Value* type, PyObject* name, Value* v, bool* result, bool* failed) {
  *failed = false;
  if (type->kind != Kind::klass || Py_TYPE(type->real) == &PyType_Type) return false;
  PyObject* check = lookup_type(Py_TYPE(type->real), name);
  if (!check || Py_TYPE(check) != &PyFunction_Type) return false;
  PyObject* module = PyObject_GetAttr(check, names().__module__);
  const std::string where = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
  Py_XDECREF(module);
  PyErr_Clear();
  if (where == "abc" || where == "typing" || where == "enum" || where.rfind("torch", 0) == 0) return false;
  Value* r = calls.call(values.wrap_constant_object(check), {type, v});
  const int t = r ? subscripts.truth(r) : -1;
  *failed = t < 0;
  *result = t == 1;
  return true;
}

namespace {
bool is_of_typing(PyObject* hook) {
  ObjectRef function = Py_TYPE(hook) == &PyClassMethod_Type ? ObjectRef::steal(PyObject_GetAttrString(hook, "__func__")) : ObjectRef::borrow(hook);
  ObjectRef module = function ? ObjectRef::steal(PyObject_GetAttr(function.get(), names().__module__)) : ObjectRef();
  PyErr_Clear();
  return module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "typing") == 0;
}
}  // namespace

bool Attributes::issubclass(Value* v, Value* type, bool* result) {
  if (values.kind(type) == Kind::tuple) {
    for (Value* t : values.items(type)) {
      if (!issubclass(v, t, result)) return false;
      if (*result) return true;
    }
    *result = false;
    return true;
  }
  bool failed = false;
  if (ask_metaclass(type, names().__subclasscheck__, v, result, &failed)) return !failed;
  if (values.kind(v) != Kind::klass) {
    exceptions.raise(PyExc_TypeError, "issubclass() arg 1 must be a class");
    if (v->kind != Kind::constant) exceptions.doubt_own();   // it may have bases of its own
    return false;
  }
  return subclass_of(reinterpret_cast<PyTypeObject*>(v->real), type, result);
}

namespace {
// ABCs answer by their registry and by hooks of the library; a hook of the user's is Python that must not run here. It is asked about subclasses, too.
bool has_hook_of_user(PyTypeObject* base) {
  if (!PyType_IsSubtype(Py_TYPE(base), known().abc_meta)) return false;
  static PyObject* const name = PyUnicode_InternFromString("__subclasshook__");
  PyObject* hook = _PyType_Lookup(base, name);
  if (!hook || Py_TYPE(hook) != &PyClassMethod_Type) return false;
  const auto inner = guards::ObjectRef::steal(PyObject_GetAttr(hook, names().func_));
  PyObject* home = PyFunction_Check(inner.get()) ? PyFunction_GET_MODULE(inner.get()) : nullptr;
  const std::string_view own = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : "";
  return own != "collections.abc" && own != "_collections_abc" && own != "numbers" && own != "typing" && !own.starts_with("torch") && own != "os" && own != "contextlib";
}
}  // namespace

bool Attributes::subclass_of(PyTypeObject* t, Value* type, bool* result) {
  values.force(type);
  if (type->kind == Kind::constant && type->type == known().union_type) {
    PyObject* args = values.keep(PyObject_GetAttrString(type->real, "__args__"));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      if (!subclass_of(t, values.wrap_constant_object(PyTuple_GET_ITEM(args, i)), result)) return false;
      if (*result) return true;
    }
    *result = false;
    return true;
  }
  if (type->kind != Kind::klass) {
    if (type->kind == Kind::constant) {   // typing.Callable and its like: typing answers from collections.abc
      const int r = PyObject_IsSubclass(reinterpret_cast<PyObject*>(t), type->real);
      if (r < 0) { exceptions.raise_python(); return false; }
      *result = r == 1;
      return true;
    }
    exceptions.raise(PyExc_TypeError, "isinstance() arg 2 must be a type, a tuple of types, or a union");
    return false;
  }
  auto* base = reinterpret_cast<PyTypeObject*>(type->real);
  if (t == base || (PyType_IsSubtype(t, base) && !has_hook_of_user(base))) { *result = true; return true; }
  PyTypeObject* meta = Py_TYPE(base);
  PyObject* check = _PyType_Lookup(meta, names().__subclasscheck__);
  if (meta == &PyType_Type || !check || Py_TYPE(check) != &PyFunction_Type || meta == known().parameter_meta) { *result = false; return true; }
  PyObject* module = PyObject_GetAttr(type->real, names().__module__);
  const std::string where = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
  Py_XDECREF(module);
  PyErr_Clear();
  if (!PyType_IsSubtype(meta, known().abc_meta) || has_hook_of_user(base)) {
    if (where.rfind("torch", 0) == 0 || where.rfind("enum", 0) == 0) { *result = false; return true; }
    stop("subclass-hook", std::string("isinstance asks the class ") + base->tp_name + ", which defines its own check");
  }
  const int r = PyObject_IsSubclass(reinterpret_cast<PyObject*>(t), type->real);
  if (r < 0) { exceptions.raise_python(); return false; }
  *result = r == 1;
  return true;
}

namespace {
PyObject* known_class_attribute() {   // object.__class__
  static PyObject* const own = _PyType_Lookup(&PyBaseObject_Type, names().__class__);
  return own;
}
}  // namespace

bool Attributes::isinstance(Value* v, Value* type, bool* result) {
  values.force(v);
  if (v->kind == Kind::object && values.kind(type) == Kind::klass && type->real != reinterpret_cast<PyObject*>(&PyBaseObject_Type) && is_polyfill_module(bytecode::in_type_dict(v->type, "__module__"))) {
    auto* asked = reinterpret_cast<PyTypeObject*>(type->real);
    PyObject* module = PyObject_GetAttr(type->real, names().__module__);
    const std::string home = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
    Py_XDECREF(module);
    PyErr_Clear();
    // The context of an autograd function is no container, as its stand-in is none: only autograd's own classes tell them apart.
    const bool is_alike = std::string_view(v->type->tp_name) == "FunctionContext" && home.rfind("torch.autograd", 0) != 0 && home.rfind("torch._C", 0) != 0;
    if (!is_alike && !PyType_IsSubtype(v->type, asked) && !is_polyfill_module(bytecode::in_type_dict(asked, "__module__"))) builtins.refuse_stand_in(v);
  }
  if (v->kind == Kind::generator && values.kind(type) == Kind::klass && values.stands_for_c(body<Generator>(v).frame->function)) {   // itertools.chain, which is no generator
    const std::string_view name = reinterpret_cast<PyTypeObject*>(type->real)->tp_name;
    if (name == "generator" || name == "Generator" || name == "Sized" || name.starts_with("itertools.")) builtins.refuse_stand_in(v);
  }
  if (values.kind(type) == Kind::tuple) {
    for (Value* t : values.items(type)) {
      if (!isinstance(v, t, result)) return false;
      if (*result) return true;
    }
    *result = false;
    return true;
  }
  if (v->kind == Kind::tensor && values.kind(type) == Kind::klass && std::string_view(Py_TYPE(type->real)->tp_name) == "torch.tensortype") {   // torch.FloatTensor: a dtype and a device
    PyObject *dtype = values.keep(PyObject_GetAttrString(type->real, "dtype")), *layout = values.keep(PyObject_GetAttrString(type->real, "layout")), *cuda = values.keep(PyObject_GetAttrString(type->real, "is_cuda"));
    Value *own_dtype = getattr(v, "dtype"), *own_layout = getattr(v, "layout"), *own_cuda = getattr(v, "is_cuda");
    if (!own_dtype || !own_layout || !own_cuda) return false;
    *result = own_dtype->real == dtype && own_layout->real == layout && own_cuda->real == cuda;
    return true;
  }
  if (v->kind == Kind::tensor && values.kind(type) == Kind::klass && (type->real == reinterpret_cast<PyObject*>(known().parameter) || type->real == reinterpret_cast<PyObject*>(known().buffer)) &&
      !PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(type->real))) {   // a tensor may say that it is one
    Value* mark = mappings.dict_get(instance_dict(v), type->real == reinterpret_cast<PyObject*>(known().buffer) ? names()._is_buffer : names()._is_param);
    const int says = mark ? subscripts.truth(mark) : 0;
    *result = says == 1;
    return says >= 0;
  }
  if (v->kind != Kind::tensor && values.kind(type) == Kind::klass && PyType_IsSubtype(v->type, known().tensor) && Py_TYPE(type->real) != &PyType_Type &&
      Py_TYPE(type->real) != Py_TYPE(reinterpret_cast<PyObject*>(known().tensor)) && !PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(type->real)))
    stop("tensor-class", std::string("isinstance asks whether a tensor of the class ") + v->type->tp_name + " says that it is a " + reinterpret_cast<PyTypeObject*>(type->real)->tp_name);
  if (v->kind == Kind::opaque && !v->real && !number_of(v)) stop("opaque-object", "isinstance of a value that is not known");
  PyTypeObject* own = v->kind == Kind::klass || v->kind == Kind::module || v->kind == Kind::builtin ? Py_TYPE(v->real) : v->type;
  if (Library::is_array_value(v) && type->real != reinterpret_cast<PyObject*>(own)) return subclass_of(PyType_IsSubtype(own, reinterpret_cast<PyTypeObject*>(type->real)) ? own : library.type_of_array(v), type, result);
  bool failed = false;
  if (reinterpret_cast<PyObject*>(own) != type->real && ask_metaclass(type, names().__instancecheck__, v, result, &failed)) return !failed;
  if (values.kind(type) == Kind::klass && std::string_view(Py_TYPE(type->real)->tp_name) == "_ProtocolMeta" && !PyType_IsSubtype(own, reinterpret_cast<PyTypeObject*>(type->real))) {
    // The class may have what the protocol asks for; else an attribute of the instance may be it.
    PyObject* hook = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type->real), values.keep(PyUnicode_InternFromString("__subclasshook__")));
    const int r = hook && is_of_typing(hook) ? PyObject_IsSubclass(reinterpret_cast<PyObject*>(own), type->real) : -1;
    PyErr_Clear();
    const bool has_attributes = own->tp_dictoffset != 0 || (own->tp_flags & Py_TPFLAGS_MANAGED_DICT);
    if (r < 0 || (r == 0 && has_attributes)) stop("subclass-hook", std::string("isinstance asks the protocol ") + reinterpret_cast<PyTypeObject*>(type->real)->tp_name + ", which looks at the instance");
    *result = r == 1;
    return true;
  }
  // What is no class says so in words of its own, whatever it is asked about.
  if (type->kind == Kind::constant && type->type != known().union_type && PyObject_IsInstance(Py_None, type->real) < 0) { exceptions.raise_python(); return false; }
  // An instance may say that it is of another class: Python asks where its type gives no answer, ABCs ask first.
  if (v->kind == Kind::object && is_user_class(own) && (lookup_type(own, names().__class__) != known_class_attribute() || own_method(own, names().__getattribute__))) {
    const bool is_same = type->real == reinterpret_cast<PyObject*>(own);
    if (values.kind(type) == Kind::klass && !is_same && Py_TYPE(type->real) != &PyType_Type && Py_TYPE(type->real) != Py_TYPE(reinterpret_cast<PyObject*>(known().tensor)))
      stop("subclass-hook", std::string("isinstance asks a class with a check of its own about an instance of ") + own->tp_name + ", which says itself what its class is");
    if (!subclass_of(own, type, result)) return false;
    if (*result) return true;
    Value* said = getattr(v, names().__class__);
    if (!said && exceptions.raised_is(PyExc_AttributeError)) { exceptions.take_raised(); return true; }
    if (!said) return false;
    if (values.force(said)->kind != Kind::klass || said->real == reinterpret_cast<PyObject*>(own)) return true;
    return subclass_of(reinterpret_cast<PyTypeObject*>(said->real), type, result);
  }
  return subclass_of(own, type, result);
}

}  // namespace cutaway::capture
