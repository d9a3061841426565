#include "compiler/capture/values/types.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/values/names.h"

namespace cutaway::capture {

PyObject* find_member(const char* module, const char* path) {
  PyObject* o = PyImport_ImportModule(module);
  std::string rest = path;
  while (o && !rest.empty()) {
    const size_t dot = rest.find('.');
    PyObject* next = PyObject_GetAttrString(o, rest.substr(0, dot).c_str());
    Py_DECREF(o);
    o = next;
    rest = dot == std::string::npos ? std::string() : rest.substr(dot + 1);
  }
  if (!o) PyErr_Clear();
  return o;
}

namespace {

PyTypeObject* find_type(const char* module, const char* path) { return reinterpret_cast<PyTypeObject*>(find_member(module, path)); }

KnownTypes look_up() {
  KnownTypes k{};
  k.tensor = find_type("torch", "Tensor");
  k.parameter = find_type("torch.nn", "Parameter");
  k.buffer = find_type("torch.nn", "Buffer");
  k.module = find_type("torch.nn", "Module");
  k.size = find_type("torch", "Size");
  k.dtype = find_type("torch", "dtype");
  k.device = find_type("torch", "device");
  k.layout = find_type("torch", "layout");
  k.memory_format = find_type("torch", "memory_format");
  k.generator_state = find_type("torch", "Generator");
  k.enum_type = find_type("enum", "Enum");
  k.abc_meta = find_type("abc", "ABCMeta");
  k.ordered_dict = find_type("collections", "OrderedDict");
  k.defaultdict = find_type("collections", "defaultdict");
  k.deque = find_type("collections", "deque");
  k.partial = find_type("functools", "partial");
  k.method_descriptor = find_type("types", "MethodDescriptorType");
  k.wrapper_descriptor = find_type("types", "WrapperDescriptorType");
  k.method_wrapper = find_type("types", "MethodWrapperType");
  k.classmethod_descriptor = find_type("types", "ClassMethodDescriptorType");
  k.getset_descriptor = find_type("types", "GetSetDescriptorType");
  k.member_descriptor = find_type("types", "MemberDescriptorType");
  k.mappingproxy = find_type("types", "MappingProxyType");
  k.finfo = find_type("torch", "finfo");
  k.iinfo = find_type("torch", "iinfo");
  k.script_function = find_type("torch.jit", "ScriptFunction");
  k.weakref = find_type("weakref", "ref");
  k.weak_proxy = find_type("weakref", "ProxyType");
  k.weak_callable_proxy = find_type("weakref", "CallableProxyType");
  k.simple_namespace = find_type("types", "SimpleNamespace");
  k.builtin_function = find_type("types", "BuiltinFunctionType");
  k.lru_cache = find_type("functools", "_lru_cache_wrapper");
  k.pattern = find_type("re", "Pattern");
  k.match = find_type("re", "Match");
  k.context_var = find_type("contextvars", "ContextVar");
  k.context_token = find_type("contextvars", "Token");
  k.local_of_thread = find_type("_thread", "_local");
  k.exception_group = reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup);
  k.zip = find_type("builtins", "zip");
  k.enumerate = find_type("builtins", "enumerate");
  k.map = find_type("builtins", "map");
  k.filter = find_type("builtins", "filter");
  k.reversed = find_type("builtins", "reversed");
  k.cached_property = find_type("functools", "cached_property");
  k.generator = find_type("types", "GeneratorType");
  k.generic_alias = find_type("types", "GenericAlias");
  k.union_type = find_type("types", "UnionType");
  k.typing_alias = find_type("typing", "_BaseGenericAlias");
  k.dict_keys = &PyDictKeys_Type;
  k.dict_values = &PyDictValues_Type;
  k.dict_items = &PyDictItems_Type;
  k.list_iterator = &PyListIter_Type;
  k.tuple_iterator = &PyTupleIter_Type;
  k.parameter_meta = k.parameter ? Py_TYPE(k.parameter) : nullptr;
  k.logger = find_type("logging", "Logger");
  k.autograd_function_meta = find_type("torch.autograd.function", "FunctionMeta");
  k.op_overload = find_type("torch._ops", "OpOverload");
  k.op_overload_packet = find_type("torch._ops", "OpOverloadPacket");
  k.module_getattr = find_member("torch.nn", "Module.__getattr__");
  k.module_setattr = find_member("torch.nn", "Module.__setattr__");
  k.object_getattribute = find_member("builtins", "object.__getattribute__");
  k.object_setattr = find_member("builtins", "object.__setattr__");
  k.object_new = find_member("builtins", "object.__new__");
  k.function_apply = find_member("torch.autograd", "Function.apply.__func__");
  k.object_init = find_member("builtins", "object.__init__");
  if (!k.tensor || !k.module) throw std::runtime_error("torch.Tensor and torch.nn.Module were not found");
  return k;
}

bool is(PyTypeObject* t, PyTypeObject* base) { return base && PyType_IsSubtype(t, base); }

}  // namespace

const Names& names() {
  static const Names all = [] {
    Names n;
#define CUTAWAY_NAME_ROW(x) n.x = PyUnicode_InternFromString(#x);
    CUTAWAY_NAMES(CUTAWAY_NAME_ROW)
#undef CUTAWAY_NAME_ROW
    n.throw_ = PyUnicode_InternFromString("throw");
    n.func_ = PyUnicode_InternFromString("__func__");   // a reserved word of C++
    return n;
  }();
  return all;
}

const KnownTypes& known() {
  static const KnownTypes types = look_up();
  return types;
}

std::string qualified_name(PyTypeObject* t) {
  PyObject* name = PyType_GetQualName(t);
  const char* text = name ? PyUnicode_AsUTF8(name) : nullptr;
  std::string out = text ? text : t->tp_name;
  Py_XDECREF(name);
  PyErr_Clear();
  return out;
}

bool is_enum(PyTypeObject* t) { return is(t, known().enum_type); }

bool has_generic_getattr(PyTypeObject* t) {
  if (t->tp_getattro == PyObject_GenericGetAttr) return true;
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  // A heap type's slot calls Python only where __getattribute__ is not object's; __getattr__ is looked at by whoever asks.
  PyObject* found = _PyType_Lookup(t, names().__getattribute__);
  return found == known().object_getattribute || (found && Py_TYPE(found) == known().wrapper_descriptor && PyDescr_TYPE(found)->tp_getattro == PyObject_GenericGetAttr);
}

namespace {
// Every class up to the one of C is written in Python (numpy.float64 derives from float, and is not), and none has operators of its own:
// Python computes with constants, and must not meet code of the program's.
bool is_of_python(PyTypeObject* t, bool with_operators) {
  PyObject* mro = t->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(bytecode::dict_of_type(base), &position, &key, &value)) {
      const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : "";
      if (std::string_view(name) == "__new__" && PyCFunction_Check(value)) return false;
      if (!with_operators && std::string_view(name).substr(0, 2) == "__" && (Py_TYPE(value) == &PyFunction_Type || Py_TYPE(value) == &PyStaticMethod_Type) && std::string_view(name) != "__init__") return false;
    }
  }
  while (t && (t->tp_flags & Py_TPFLAGS_HEAPTYPE)) t = t->tp_base;
  return t == &PyLong_Type || t == &PyFloat_Type || t == &PyUnicode_Type;
}
}  // namespace

Kind kind_of_type(PyTypeObject* t, PyObject* example) {
  const KnownTypes& k = known();
  if (!is_ready(t) || (example && PyType_Check(example) && !is_ready(reinterpret_cast<PyTypeObject*>(example)))) return Kind::opaque;
  if (t == Py_TYPE(Py_None) || t == &PyBool_Type || t == &PyLong_Type || t == &PyFloat_Type || t == &PyUnicode_Type || t == &PyBytes_Type || t == &PyComplex_Type ||
      t == k.dtype || t == k.device || t == k.layout || t == k.memory_format || t == &PyEllipsis_Type || t == &PyRange_Type || t == &PyCode_Type ||
      t == Py_TYPE(Py_NotImplemented) || t == k.pattern || t == k.match || t == k.finfo || t == k.iinfo)
    return Kind::constant;
  if (is_numpy_number(t) || is_numpy_dtype(t)) return Kind::constant;
  if (is(t, k.tensor)) return t == k.tensor || t == k.parameter || t == k.buffer || is_plain_tensor_subclass(t) ? Kind::tensor : Kind::opaque;
  if (t == &PyTuple_Type || t == k.size) return Kind::tuple;
  if (t == &PyList_Type || t == k.deque) return Kind::list;
  if (t == &PyDict_Type || t == k.ordered_dict || t == k.defaultdict) return Kind::dict;
  if (t == &PySet_Type || t == &PyFrozenSet_Type) return Kind::set;
  if (t == &PySlice_Type) return Kind::slice;
  if (t == &PyFunction_Type) return Kind::function;
  if (t == &PyMethod_Type) return Kind::method;
  if (t == &PyCFunction_Type || t == k.method_descriptor || t == k.wrapper_descriptor || t == k.method_wrapper || t == k.classmethod_descriptor || t == k.lru_cache ||
      t == k.op_overload || t == k.op_overload_packet || (k.script_function && t == k.script_function) || is(t, &PyCFunction_Type))
    return Kind::builtin;
  if (is(t, &PyType_Type)) return Kind::klass;
  if (is(t, &PyModule_Type)) return Kind::module;
  if (t == &PyCell_Type) return Kind::cell;
  if (t == k.dict_keys || t == k.dict_values || t == k.dict_items) return Kind::view;
  if (t == k.partial) return Kind::partial;
  if (is_enum(t)) return Kind::constant;
  if (t == k.getset_descriptor || t == k.member_descriptor || t == &PyProperty_Type || t == &PyStaticMethod_Type || t == &PyClassMethod_Type || is(t, k.generic_alias) ||
      t == k.union_type || is(t, k.typing_alias))
    return Kind::constant;
  if (is(t, &PyTuple_Type)) return has_generic_getattr(t) || !(t->tp_flags & Py_TPFLAGS_HEAPTYPE) ? Kind::tuple : Kind::opaque;
  if (is(t, &PyList_Type)) return has_generic_getattr(t) ? Kind::list : Kind::opaque;
  if (is(t, &PyDict_Type)) return has_generic_getattr(t) ? Kind::dict : Kind::opaque;
  if (is(t, &PySet_Type)) return has_generic_getattr(t) ? Kind::set : Kind::opaque;
  if (is(t, &PyLong_Type) || is(t, &PyFloat_Type) || is(t, &PyUnicode_Type)) {
    if (!is_user_class(t) || !has_generic_getattr(t)) return Kind::opaque;
    return is_of_python(t, false) ? Kind::constant : is_of_python(t, true) ? Kind::object : Kind::opaque;
  }
  if (is(t, &PyFrozenSet_Type)) return is_user_class(t) && has_generic_getattr(t) ? Kind::set : Kind::opaque;
  if (is(t, &PyBytes_Type)) return Kind::opaque;
  if (t == k.simple_namespace) return Kind::object;
  if (t != k.local_of_thread && is(t, k.local_of_thread)) return Kind::opaque;   // has a dictionary a thread, made by its __init__
  if (t->tp_flags & Py_TPFLAGS_HEAPTYPE) return Kind::object;   // attributes with a __getattribute__ of its own are refused where they are asked for
  if (PyExceptionInstance_Check(reinterpret_cast<PyObject*>(t)) || is(t, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) return Kind::object;
  if (t == &PyBaseObject_Type) return Kind::object;
  return Kind::opaque;
}

bool is_number_class(PyTypeObject* t) {
  return t && is_user_class(t) && (is(t, &PyLong_Type) || is(t, &PyFloat_Type) || is(t, &PyUnicode_Type)) && !is_enum(t) && kind_of_type(t, nullptr) == Kind::object;
}

bool has_identity(Kind k) {
  switch (k) {
    case Kind::tensor: case Kind::tuple: case Kind::list: case Kind::dict: case Kind::set: case Kind::object: case Kind::cell: case Kind::opaque: case Kind::function:
    case Kind::partial: return true;
    default: return false;
  }
}

namespace {
bool is_module_of_weak_references(PyObject* name) {
  if (!name || !PyUnicode_Check(name)) return false;
  return std::ranges::any_of(std::array{"weakref", "_weakref", "_weakrefset"}, [&](const char* n) { return PyUnicode_CompareWithASCIIString(name, n) == 0; });
}
bool is_class_of_weak_references(PyTypeObject* t) {
  const std::array all = {known().weakref, known().weak_proxy, known().weak_callable_proxy};
  return is_module_of_weak_references(bytecode::in_type_dict(t, "__module__")) || std::ranges::any_of(all, [&](PyTypeObject* w) { return PyType_IsSubtype(t, w); });
}
}  // namespace

bool makes_weak_references(PyObject* globals) { return globals && is_module_of_weak_references(PyDict_GetItemString(globals, "__name__")); }

bool is_of_weak_references(PyObject* object, PyTypeObject* type) {
  if (type && is_class_of_weak_references(type)) return true;
  if (!object) return false;
  if (PyType_Check(object)) return is_class_of_weak_references(reinterpret_cast<PyTypeObject*>(object));
  if (PyFunction_Check(object)) return is_module_of_weak_references(PyFunction_GET_MODULE(object));
  if (PyCFunction_Check(object)) return is_module_of_weak_references(reinterpret_cast<PyCFunctionObject*>(object)->m_module);
  return PyModule_Check(object) && makes_weak_references(PyModule_GetDict(object));
}

}  // namespace cutaway::capture
