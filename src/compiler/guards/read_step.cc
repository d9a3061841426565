// Steps of sources. The hot ones give borrowed references; nothing here runs code of the user's.
#include "compiler/bytecode/type_dict.h"
#include "compiler/guards/guard.h"
#include "compiler/guards/remembered.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

PyObject* found(PyObject* value) {
  if (!value) PyErr_Clear();
  return value;
}

bool is_thread_local(PyObject* o) {
  static PyTypeObject* const local = [] {
    PyObject* m = PyImport_ImportModule("_thread");
    PyObject* t = m ? PyObject_GetAttrString(m, "_local") : nullptr;
    Py_XDECREF(m);
    return reinterpret_cast<PyTypeObject*>(t);
  }();
  return Py_TYPE(o) == local;
}

PyObject* instance_dict(PyObject* base, bool& owned) {
  if (PyType_Check(base)) return bytecode::dict_of_type(reinterpret_cast<PyTypeObject*>(base));
  if (is_thread_local(base)) {   // one a thread, which it gives itself
    PyObject* own = found(PyObject_GetAttrString(base, "__dict__"));
    owned = own != nullptr;
    return own;
  }
  if (PyObject** place = _PyObject_GetDictPtr(base); place && *place) return *place;
  PyObject* made = found(PyObject_GenericGetDict(base, nullptr));
  owned = made != nullptr;
  return made;
}

bool is_deque(PyObject* o) {
  static PyTypeObject* const deque = [] {
    PyObject* m = PyImport_ImportModule("collections");
    PyObject* t = m ? PyObject_GetAttrString(m, "deque") : nullptr;
    Py_XDECREF(m);
    return reinterpret_cast<PyTypeObject*>(t);
  }();
  return Py_TYPE(o) == deque;
}

PyObject* dict_value_at(PyObject* dict, int64_t index) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  if (PyODict_Check(dict) && PyDict_GET_SIZE(dict) > 1) {   // its own order is another one than that of the table
    const ObjectRef keys = ObjectRef::steal(keys_in_order(dict));
    return keys && index < PyTuple_GET_SIZE(keys.get()) ? found(PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(keys.get(), index))) : nullptr;
  }
  for (int64_t i = 0; PyDict_Next(dict, &at, &key, &value); ++i)
    if (i == index) return value;
  return nullptr;
}

bool is_cached_function(PyObject* o) {
  static PyTypeObject* const type = [] {
    PyObject* m = PyImport_ImportModule("functools");
    PyObject* t = m ? PyObject_GetAttrString(m, "_lru_cache_wrapper") : nullptr;
    Py_XDECREF(m);
    return reinterpret_cast<PyTypeObject*>(t);
  }();
  return Py_TYPE(o) == type;
}

PyObject* dict_key_at(PyObject* dict, int64_t index) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  for (int64_t i = 0; PyDict_Next(dict, &at, &key, &value); ++i)
    if (i == index) return key;
  return nullptr;
}

}  // namespace

PyObject* tensor_of_array(PyObject* o) {
  static PyObject* const convert = [] {
    PyObject* m = PyImport_ImportModule("torch");
    PyObject* f = m ? PyObject_GetAttrString(m, "from_numpy") : nullptr;
    Py_XDECREF(m);
    return f;
  }();
  static const auto* const array = [] {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* m = PyDict_GetItemString(modules, "numpy");
    return m ? PyObject_GetAttrString(m, "ndarray") : nullptr;
  }();
  if (!convert || !array || reinterpret_cast<const PyObject*>(Py_TYPE(o)) != array) return nullptr;
  PyObject* writable = PyObject_GetAttrString(o, "flags");   // of one that may not be written to torch warns
  PyObject* may_write = writable ? PyObject_GetAttrString(writable, "writeable") : nullptr;
  const bool shares = may_write == Py_True;
  Py_XDECREF(may_write);
  Py_XDECREF(writable);
  return found(shares ? PyObject_CallOneArg(convert, o) : nullptr);
}

PyObject* behind_view(PyObject* o) {
  if (!PyDictKeys_Check(o) && !PyDictValues_Check(o) && !PyDictItems_Check(o) && Py_TYPE(o) != &PyDictProxy_Type) return nullptr;
  PyObject* all = nullptr;   // a view and a proxy refer to one object alone
  Py_TYPE(o)->tp_traverse(o, [](PyObject* to, void* place) -> int { *static_cast<PyObject**>(place) = to; return 0; }, static_cast<void*>(&all));
  return all;
}

PyObject* read_step(SourceKind kind, PyObject* key, int64_t index, PyObject* base, const FrameView& frame, bool& owned) {
  owned = false;
  switch (kind) {
    case SourceKind::local: return index < frame.slot_count ? frame.slots[index] : nullptr;
    case SourceKind::closure: {
      PyObject* closure = frame.function->func_closure;
      return closure && index < PyTuple_GET_SIZE(closure) ? PyTuple_GET_ITEM(closure, index) : nullptr;
    }
    case SourceKind::global: return found(PyDict_GetItemWithError(frame.function->func_globals, key));
    case SourceKind::builtin: return PyDict_Check(frame.function->func_builtins) ? found(PyDict_GetItemWithError(frame.function->func_builtins, key)) : nullptr;
    case SourceKind::constant: return key;
    case SourceKind::function: return reinterpret_cast<PyObject*>(frame.function);
    case SourceKind::handled_exception: {
      PyObject* exception = PyErr_GetHandledException();
      owned = exception != nullptr;
      return exception ? exception : Py_None;
    }
    case SourceKind::cell_contents: return PyCell_Check(base) ? PyCell_GET(base) : nullptr;
    case SourceKind::attr: {
      const WithoutTorchFunction off(base);
      owned = true;
      return found(PyObject_GenericGetAttr(base, key));
    }
    case SourceKind::instance_dict: return instance_dict(base, owned);
    case SourceKind::type: return reinterpret_cast<PyObject*>(Py_TYPE(base));
    case SourceKind::type_attr: return PyType_Check(base) ? _PyType_Lookup(reinterpret_cast<PyTypeObject*>(base), key) : nullptr;
    case SourceKind::tuple_item: return PyTuple_Check(base) && index < PyTuple_GET_SIZE(base) ? PyTuple_GET_ITEM(base, index) : nullptr;
    case SourceKind::list_item:
      if (PyList_Check(base)) return index < PyList_GET_SIZE(base) ? PyList_GET_ITEM(base, index) : nullptr;
      if (!is_deque(base)) return nullptr;
      owned = true;
      return found(PySequence_GetItem(base, index));
    case SourceKind::dict_item: return PyDict_Check(base) ? found(PyDict_GetItemWithError(base, key)) : nullptr;
    case SourceKind::dict_key: return PyDict_Check(base) ? dict_key_at(base, index) : nullptr;
    case SourceKind::dict_value: return PyDict_Check(base) ? dict_value_at(base, index) : nullptr;
    case SourceKind::behind_view: return behind_view(base);
    case SourceKind::function_code: return PyFunction_Check(base) ? PyFunction_GET_CODE(base) : nullptr;
    case SourceKind::function_globals: return PyFunction_Check(base) ? PyFunction_GET_GLOBALS(base) : nullptr;
    case SourceKind::function_defaults: return !PyFunction_Check(base) ? nullptr : PyFunction_GET_DEFAULTS(base) ? PyFunction_GET_DEFAULTS(base) : Py_None;
    case SourceKind::function_kwdefaults: return !PyFunction_Check(base) ? nullptr : PyFunction_GET_KW_DEFAULTS(base) ? PyFunction_GET_KW_DEFAULTS(base) : Py_None;
    case SourceKind::function_closure: return !PyFunction_Check(base) ? nullptr : PyFunction_GET_CLOSURE(base) ? PyFunction_GET_CLOSURE(base) : Py_None;
    case SourceKind::method_self: return PyMethod_Check(base) ? PyMethod_GET_SELF(base) : nullptr;
    case SourceKind::method_function: return PyMethod_Check(base) ? PyMethod_GET_FUNCTION(base) : nullptr;
    case SourceKind::weakref_target: {
      PyObject* target = PyWeakref_Check(base) ? PyWeakref_GET_OBJECT(base) : nullptr;
      return target == Py_None ? nullptr : target;
    }
    case SourceKind::remembered: return is_cached_function(base) ? remembered(base, key) : nullptr;
    case SourceKind::context_value: {
      PyObject* value = nullptr;
      if (!PyContextVar_CheckExact(base) || PyContextVar_Get(base, nullptr, &value) < 0) PyErr_Clear();
      owned = value != nullptr;
      return value;
    }
    case SourceKind::array_tensor: owned = true; return tensor_of_array(base);
    case SourceKind::tensor_size: case SourceKind::tensor_stride: case SourceKind::tensor_storage_offset: {
      if (!is_tensor(base)) return nullptr;
      const at::Tensor& t = unwrap_tensor(base);
      if (kind != SourceKind::tensor_storage_offset && index >= t.dim()) return nullptr;
      owned = true;
      return PyLong_FromLongLong(kind == SourceKind::tensor_size ? t.size(index) : kind == SourceKind::tensor_stride ? t.stride(index) : t.storage_offset());
    }
    case SourceKind::tensor_is_leaf: case SourceKind::tensor_is_view: {
      owned = true;
      if (!is_tensor(base)) return nullptr;
      const at::Tensor& t = unwrap_tensor(base);
      return Py_NewRef((kind == SourceKind::tensor_is_leaf ? t.is_leaf() : t.is_view()) ? Py_True : Py_False);
    }
    case SourceKind::tensor_has_hooks: {
      owned = true;
      if (!is_tensor(base)) return nullptr;
      return Py_NewRef(has_gradient_hooks(unwrap_tensor(base)) ? Py_True : Py_False);
    }
  }
  return nullptr;
}

}  // namespace cutaway::guards
