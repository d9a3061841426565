#include "compiler/replay/object_writer.h"

#include <marshal.h>

#include <algorithm>

#include "compiler/bytecode/type_dict.h"
#include "compiler/frames/compiled_function.h"
#include "compiler/frames/marks.h"
#include "compiler/guards/tensor_object.h"
#include "core/base/text.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::replay {

using bytecode::ObjectRef;
using record::kAbsent;
using record::Object;
using record::ObjectId;

namespace {

constexpr size_t kMostObjects = 500'000;   // a record is something to send

std::string utf8(PyObject* o) {
  Py_ssize_t n = 0;
  const char* s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &n) : nullptr;
  if (!s) { PyErr_Clear(); return {}; }
  return std::string(s, static_cast<size_t>(n));
}
ObjectRef imported(const char* module, const char* name) {
  ObjectRef m = ObjectRef::steal(PyImport_ImportModule(module));
  ObjectRef o = m ? ObjectRef::steal(PyObject_GetAttrString(m.get(), name)) : ObjectRef();
  if (!o) PyErr_Clear();
  return o;
}

/// Types that are asked for by identity. Looked up once; borrowed for ever.
struct Types {
  PyTypeObject *ordered_dict, *defaultdict, *deque, *partial, *size, *dtype, *device, *layout, *memory_format, *parameter, *buffer, *tensor, *op_overload, *enum_meta, *member, *getset, *lru, *mapping_proxy, *tuple_getter;
};
const Types& types() {
  static const Types all = [] {
    const auto find = [](const char* module, const char* name) { return reinterpret_cast<PyTypeObject*>(imported(module, name).release()); };
    return Types{find("collections", "OrderedDict"), find("collections", "defaultdict"), find("collections", "deque"), find("functools", "partial"), find("torch", "Size"), find("torch", "dtype"),
                 find("torch", "device"), find("torch", "layout"), find("torch", "memory_format"), find("torch.nn", "Parameter"), find("torch.nn", "Buffer"), find("torch", "Tensor"),
                 find("torch._ops", "OpOverload"), find("enum", "EnumMeta"), find("types", "MemberDescriptorType"), find("types", "GetSetDescriptorType"), find("functools", "_lru_cache_wrapper"), find("types", "MappingProxyType"),
                 find("_collections", "_tuplegetter")};
  }();
  return all;
}

PyObject* instance_dict(PyObject* o) {   // new reference or null
  PyObject** place = _PyObject_GetDictPtr(o);
  if (place && *place) return Py_NewRef(*place);
  if (!Py_TYPE(o)->tp_dictoffset) return nullptr;
  PyObject* d = PyObject_GenericGetDict(o, nullptr);   // makes one where there is none yet
  if (!d) PyErr_Clear();
  return d;
}

/// The text of a class's __module__, without asking the class.
std::string module_of_type(PyTypeObject* t) {
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
    const std::string name = t->tp_name;
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? "builtins" : name.substr(0, dot);
  }
  return utf8(bytecode::in_type_dict(t, "__module__"));
}
std::string qualname_of_type(PyTypeObject* t) {
  if (t->tp_flags & Py_TPFLAGS_HEAPTYPE) return utf8(reinterpret_cast<PyHeapTypeObject*>(t)->ht_qualname);
  const std::string name = t->tp_name;
  return name.substr(name.rfind('.') + 1);
}
/// A class that C made from a specification: its instances hold what no attribute shows. A class of Python's has no method descriptors of its own.
bool is_made_in_c(PyTypeObject* t) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
    auto* c = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i));
    if (!(c->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    if (c->tp_flags & Py_TPFLAGS_DISALLOW_INSTANTIATION) return true;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(bytecode::dict_of_type(c), &position, &key, &value))
      if (Py_TYPE(value) == &PyMethodDescr_Type && PyDescr_TYPE(value) == c) return true;
  }
  return false;
}
std::string type_text(PyTypeObject* t) { return module_of_type(t) + "." + qualname_of_type(t); }

}  // namespace

ObjectWriter::ObjectWriter(record::FrameRecord& into, store::Store& blobs) : record_(into), blobs_(blobs) {
  ObjectRef paths = imported("sysconfig", "get_paths");
  ObjectRef all = paths ? ObjectRef::steal(PyObject_CallNoArgs(paths.get())) : ObjectRef();
  for (const char* name : {"stdlib", "platstdlib", "purelib", "platlib"})
    if (PyObject* p = all ? PyDict_GetItemString(all.get(), name) : nullptr) prefixes_.push_back(utf8(p) + "/");
  PyErr_Clear();
}
ObjectWriter::~ObjectWriter() = default;

bool ObjectWriter::is_library(const std::string& module) {
  const std::string top = module.substr(0, module.find('.'));
  if (top == "torch" || top == "cutaway" || top == "builtins") return true;
  if (module.empty() || top == "__main__") return false;
  auto [at, is_new] = libraries_.emplace(module, false);
  if (!is_new) return at->second;
  PyObject* m = PyDict_GetItemString(PyImport_GetModuleDict(), module.c_str());
  PyObject* dict = m && PyModule_Check(m) ? PyModule_GetDict(m) : nullptr;
  if (!dict) return false;
  const std::string file = utf8(PyDict_GetItemString(dict, "__file__"));
  if (file.empty()) {   // of C, or a namespace package
    PyObject* path = PyDict_GetItemString(dict, "__path__");
    return at->second = !path;
  }
  return at->second = std::any_of(prefixes_.begin(), prefixes_.end(), [&](const std::string& p) { return file.starts_with(p); });
}

/// Walks dictionaries alone: an attribute of a class of the user's may be code.
bool ObjectWriter::is_at(PyObject* o, const std::string& module, const std::string& name) {
  PyObject* at = PyDict_GetItemString(PyImport_GetModuleDict(), module.c_str());
  std::string rest = name;
  while (at && !rest.empty()) {
    const size_t dot = rest.find('.');
    const std::string part = rest.substr(0, dot);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    ObjectRef key = ObjectRef::steal(PyUnicode_FromString(part.c_str()));
    if (PyModule_Check(at)) at = PyDict_GetItemWithError(PyModule_GetDict(at), key.get());
    else if (PyType_Check(at)) at = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(at), key.get());
    else at = nullptr;
  }
  PyErr_Clear();
  return at == o;
}

ObjectId ObjectWriter::start(PyObject* o, const char* kind) {
  const auto id = static_cast<ObjectId>(record_.objects.size());
  record_.objects.push_back({});
  record_.objects.back().kind = kind;
  if (o) {
    ids_.emplace(o, id);
    kept_.push_back(ObjectRef::borrow(o));
  }
  return id;
}

ObjectId ObjectWriter::text(std::string_view s) {
  const ObjectId id = start(nullptr, "str");
  at(id).text = s;
  return id;
}
ObjectId ObjectWriter::none() { return none_ != kAbsent ? none_ : none_ = start(Py_None, "none"); }

void ObjectWriter::make_opaque(ObjectId id, PyObject* o, std::string because) {
  at(id) = {};
  at(id).kind = "opaque";
  at(id).text = type_text(Py_TYPE(o));
  at(id).because = std::move(because);
}

ObjectId ObjectWriter::add(PyObject* o) {
  if (!o) return kAbsent;
  if (o == Py_None) return none();
  if (auto it = ids_.find(o); it != ids_.end()) return it->second;
  const ObjectId id = start(o, "none");
  if (record_.objects.size() > kMostObjects) return id;   // finish() refuses
  waiting_.emplace_back(o, id);   // described later: depth of the program's data is not depth of our stack
  return id;
}

void ObjectWriter::describe(PyObject* o, ObjectId id) {
  if (PyCallable_Check(o) && !PyType_Check(o)) {
    static constexpr const char* kMarks[] = {"", "graph_break", "allow_in_graph", "constant_result", "reorderable"};   // in the order of frames::Mark
    if (const frames::Mark mark = frames::mark_of(o); mark != frames::Mark::none) record_.marks.push_back({id, kMarks[static_cast<int>(mark)]});
    PyObject* target = frames::compiled_target(o);
    const bool is_disabled = !target && frames::is_disabled_function(o);
    ObjectRef wrapped = is_disabled ? ObjectRef::steal(PyObject_GetAttrString(o, "__wrapped__")) : ObjectRef::borrow(target);
    if (wrapped) {
      const ObjectId inside = add(wrapped.get());
      at(id).kind = is_disabled ? "disabled" : "compiled";
      at(id).items = {inside};
      return;
    }
    PyErr_Clear();
  }
  if (describe_plain(o, id) || describe_torch(o, id) || describe_import(o, id) || describe_container(o, id) || describe_code(o, id) || describe_class(o, id) || describe_instance(o, id)) return;
  make_opaque(id, o, "objects of this type have no form as data");
}

bool ObjectWriter::describe_plain(PyObject* o, ObjectId id) {
  const auto set = [&](const char* kind, std::string value = {}) { at(id).kind = kind; at(id).text = std::move(value); return true; };
  if (o == Py_True) return set("true");
  if (o == Py_False) return set("false");
  if (o == Py_Ellipsis) return set("ellipsis");
  if (o == Py_NotImplemented) return set("not_implemented");
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyLong_Type) {
    ObjectRef s = ObjectRef::steal(PyNumber_ToBase(o, 16));   // hexadecimal: Python limits how long a decimal number may be
    if (!s) { PyErr_Clear(); return false; }
    return set("int", utf8(s.get()));
  }
  if (t == &PyFloat_Type) {
    ObjectRef s = ObjectRef::steal(PyObject_CallMethod(o, "hex", nullptr));
    return set("float", utf8(s.get()));
  }
  if (t == &PyComplex_Type) {
    for (double part : {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)}) {
      ObjectRef number = ObjectRef::steal(PyFloat_FromDouble(part));
      const ObjectId n = add(number.get());
      at(id).items.push_back(n);
    }
    return set("complex");
  }
  if (t == &PyUnicode_Type) {
    if (!PyUnicode_AsUTF8(o)) { PyErr_Clear(); make_opaque(id, o, "text with surrogates that stand alone"); return true; }
    return set("str", utf8(o));
  }
  if (t == &PyBytes_Type || t == &PyByteArray_Type) {
    const bool is_bytes = t == &PyBytes_Type;
    const char* data = is_bytes ? PyBytes_AS_STRING(o) : PyByteArray_AS_STRING(o);
    auto digest = blobs_.put(std::as_bytes(std::span(data, static_cast<size_t>(is_bytes ? PyBytes_GET_SIZE(o) : PyByteArray_GET_SIZE(o)))));
    if (!digest.ok()) { if (failed_.empty()) failed_ = digest.error().text(); return false; }
    at(id).blob = *digest;
    return set(is_bytes ? "bytes" : "bytearray");
  }
  return false;
}

bool ObjectWriter::describe_torch(PyObject* o, ObjectId id) {
  const Types& k = types();
  PyTypeObject* t = Py_TYPE(o);
  if (t == k.dtype || t == k.layout || t == k.memory_format || t == k.device) {
    ObjectRef s = ObjectRef::steal(PyObject_Str(o));   // of C
    std::string name = utf8(s.get());
    if (name.starts_with("torch.")) name = name.substr(6);
    at(id).kind = t == k.dtype ? "dtype" : t == k.layout ? "layout" : t == k.memory_format ? "memory_format" : "device";
    at(id).text = name;
    return true;
  }
  if (k.op_overload && t == k.op_overload) {
    ObjectRef name = ObjectRef::steal(PyObject_CallMethod(o, "name", nullptr));
    if (!name) { PyErr_Clear(); return false; }
    at(id).kind = "operator";
    at(id).text = utf8(name.get());
    return true;
  }
  if (!guards::is_tensor(o)) return false;
  if (t != k.tensor && t != k.parameter && t != k.buffer) { make_opaque(id, o, "a subclass of Tensor"); return true; }
  const at::Tensor& tensor = guards::unwrap_tensor(o);
  if (auto why = tensor::why_not_strided(tensor)) { make_opaque(id, o, why->what); return true; }
  at(id).kind = "tensor";
  at(id).tensor = static_cast<int64_t>(tensors_.size());
  if (t == k.parameter) at(id).text = "parameter";
  if (t == k.buffer) at(id).text = "buffer";
  tensors_.push_back(ObjectRef::borrow(o));
  ObjectRef dict = ObjectRef::steal(instance_dict(o));
  if (dict && PyDict_GET_SIZE(dict.get())) { const ObjectId a = dict_of(dict.get()); at(id).attributes = a; }
  return true;
}

bool ObjectWriter::describe_import(PyObject* o, ObjectId id) {
  const auto named = [&](const std::string& module, const std::string& name) {
    if (!is_library(module) || !is_at(o, module, name)) return false;
    at(id).kind = "import";
    at(id).module = module;
    at(id).name = name;
    return true;
  };
  if (PyModule_Check(o)) {
    const std::string name = utf8(PyDict_GetItemString(PyModule_GetDict(o), "__name__"));
    if (named(name, "")) return true;
    if (name.empty() || is_library(name)) return false;
    const ObjectId scope = scope_of(PyModule_GetDict(o));
    at(id).kind = "module";
    at(id).name = name;
    at(id).scope = scope;
    return true;
  }
  if (PyType_Check(o)) return named(module_of_type(reinterpret_cast<PyTypeObject*>(o)), qualname_of_type(reinterpret_cast<PyTypeObject*>(o)));
  if (PyFunction_Check(o)) {
    auto* f = reinterpret_cast<PyFunctionObject*>(o);
    return named(utf8(f->func_module), utf8(f->func_qualname)) || named(utf8(f->func_module), utf8(f->func_name));
  }
  if (PyCFunction_Check(o)) {
    PyObject* self = PyCFunction_GET_SELF(o);
    const std::string name = reinterpret_cast<PyCFunctionObject*>(o)->m_ml->ml_name;
    if (!self || PyModule_Check(self)) {
      const std::string module = self ? utf8(PyDict_GetItemString(PyModule_GetDict(self), "__name__")) : utf8(reinterpret_cast<PyCFunctionObject*>(o)->m_module);
      if (named(module, name)) return true;
    } else {
      if (PyType_Check(self) && named(module_of_type(reinterpret_cast<PyTypeObject*>(self)), qualname_of_type(reinterpret_cast<PyTypeObject*>(self)) + "." + name)) return true;
      // torch.sin is a method of a hidden class; the function is at home in torch.
      for (const char* module : {"torch", "torch._C._nn", "torch._C._VariableFunctions", "torch.nn.functional"})
        if (named(module, name)) return true;
      const ObjectId receiver = add(self);
      at(id).kind = "builtin_method";
      at(id).name = name;
      at(id).items = {receiver};
      return true;
    }
  }
  if (Py_TYPE(o) == &PyMethodDescr_Type || Py_TYPE(o) == &PyWrapperDescr_Type || Py_TYPE(o) == types().getset || Py_TYPE(o) == types().member || Py_TYPE(o) == &PyClassMethodDescr_Type) {
    PyTypeObject* owner = PyDescr_TYPE(o);
    return named(module_of_type(owner), qualname_of_type(owner) + "." + utf8(PyDescr_NAME(o)));
  }
  return describe_singleton(o, id);
}

/// dataclasses.MISSING, inspect._empty, a library's logger: named by the module that its class comes from, where it hangs there under some name.
bool ObjectWriter::describe_singleton(PyObject* o, ObjectId id) {
  PyTypeObject* t = Py_TYPE(o);
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_Check(o)) return false;
  const std::string module = module_of_type(t);
  if (!is_library(module)) return false;
  PyObject* m = PyDict_GetItemString(PyImport_GetModuleDict(), module.c_str());
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  if (m && PyModule_Check(m))
    while (PyDict_Next(PyModule_GetDict(m), &position, &key, &value))
      if (value == o && PyUnicode_Check(key)) {
        at(id).kind = "import";
        at(id).module = module;
        at(id).name = utf8(key);
        return true;
      }
  return false;
}

ObjectId ObjectWriter::dict_of(PyObject* dict) {   // a copy of its items, whatever the dictionary is to others
  const ObjectId id = start(nullptr, "dict");
  std::vector<ObjectId> items;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) { items.push_back(add(key)); items.push_back(add(value)); }
  at(id).items = std::move(items);
  return id;
}

bool ObjectWriter::describe_container(PyObject* o, ObjectId id) {
  const Types& k = types();
  PyTypeObject* t = Py_TYPE(o);
  std::vector<ObjectId> items;
  const auto done = [&](const char* kind) { at(id).kind = kind; at(id).items = std::move(items); return true; };
  if (t == &PyTuple_Type || t == k.size) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) items.push_back(add(PyTuple_GET_ITEM(o, i)));
    return done(t == k.size ? "size" : "tuple");
  }
  if (t == &PyList_Type) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) items.push_back(add(PyList_GET_ITEM(o, i)));
    return done("list");
  }
  if (t == &PyDict_Type || t == k.ordered_dict || t == k.defaultdict) {
    if (t == k.defaultdict) {
      ObjectRef factory = ObjectRef::steal(PyObject_GetAttrString(o, "default_factory"));
      if (factory && factory.get() != Py_None) { const ObjectId f = add(factory.get()); at(id).content = f; }
      PyErr_Clear();
    }
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    if (t == k.ordered_dict) {   // its order is not its dictionary's
      ObjectRef pairs = ObjectRef::steal(PyDict_Items(o));
      for (Py_ssize_t i = 0; pairs && i < PyList_GET_SIZE(pairs.get()); ++i)
        for (int part = 0; part < 2; ++part) items.push_back(add(PyTuple_GET_ITEM(PyList_GET_ITEM(pairs.get(), i), part)));
      PyErr_Clear();
    } else {
      while (PyDict_Next(o, &position, &key, &value)) { items.push_back(add(key)); items.push_back(add(value)); }
    }
    return done(t == &PyDict_Type ? "dict" : t == k.ordered_dict ? "ordered_dict" : "defaultdict");
  }
  if (t == k.mapping_proxy) {
    ObjectRef dict = ObjectRef::steal(PyDict_New());
    if (PyDict_Update(dict.get(), o) < 0) { PyErr_Clear(); return false; }
    const ObjectId content = dict_of(dict.get());
    at(id).content = content;
    return done("mappingproxy");
  }
  if (t == k.tuple_getter) {   // of C: (its type, (position, text))
    ObjectRef parts = ObjectRef::steal(PyObject_CallMethod(o, "__reduce__", nullptr));
    PyObject* arguments = parts && PyTuple_Check(parts.get()) && PyTuple_GET_SIZE(parts.get()) == 2 ? PyTuple_GET_ITEM(parts.get(), 1) : nullptr;
    if (!arguments || !PyTuple_Check(arguments) || PyTuple_GET_SIZE(arguments) != 2) { PyErr_Clear(); return false; }
    for (int i = 0; i < 2; ++i) items.push_back(add(PyTuple_GET_ITEM(arguments, i)));
    return done("tuple_getter");
  }
  if (t == &PySet_Type || t == &PyFrozenSet_Type || t == k.deque) {
    ObjectRef list = ObjectRef::steal(PySequence_List(o));
    if (!list) { PyErr_Clear(); return false; }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) items.push_back(add(PyList_GET_ITEM(list.get(), i)));
    if (t == k.deque) {
      ObjectRef most = ObjectRef::steal(PyObject_GetAttrString(o, "maxlen"));
      if (most && PyLong_Check(most.get())) at(id).text = std::to_string(PyLong_AsLong(most.get()));
      PyErr_Clear();
    }
    return done(t == &PySet_Type ? "set" : t == &PyFrozenSet_Type ? "frozenset" : "deque");
  }
  if (t == &PySlice_Type || t == &PyRange_Type) {
    for (const char* name : {"start", "stop", "step"}) {
      ObjectRef part = ObjectRef::steal(PyObject_GetAttrString(o, name));
      items.push_back(add(part.get()));
      kept_.push_back(std::move(part));
    }
    return done(t == &PySlice_Type ? "slice" : "range");
  }
  return false;
}

void ObjectWriter::note_names(PyObject* code) {
  auto* c = reinterpret_cast<PyCodeObject*>(code);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_names); ++i) names_.insert(utf8(PyTuple_GET_ITEM(c->co_names, i)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_consts); ++i)
    if (PyObject* inner = PyTuple_GET_ITEM(c->co_consts, i); PyCode_Check(inner)) note_names(inner);
}

ObjectId ObjectWriter::scope_of(PyObject* globals) {
  for (const Namespace& n : namespaces_)
    if (n.dict == globals) return n.id;
  const std::string name = utf8(PyDict_GetItemString(globals, "__name__"));
  PyObject* module = name.empty() ? nullptr : PyDict_GetItemString(PyImport_GetModuleDict(), name.c_str());
  const bool library = module && PyModule_Check(module) && PyModule_GetDict(module) == globals && is_library(name);
  const ObjectId id = start(nullptr, library ? "library_namespace" : "namespace");
  if (library) at(id).module = name;
  else at(id).name = name;
  kept_.push_back(ObjectRef::borrow(globals));
  namespaces_.push_back({globals, id, {}});
  return id;
}

/// Names that recorded code mentions, in every namespace that is recorded. True when there were new ones: their values may hold more code.
bool ObjectWriter::fill_namespaces() {
  bool any = false;
  for (size_t n = 0; n < namespaces_.size(); ++n) {
    if (at(namespaces_[n].id).kind != "namespace") continue;
    std::vector<std::string> wanted;
    for (const std::string& name : names_)
      if (namespaces_[n].done.insert(name).second) wanted.push_back(name);
    std::sort(wanted.begin(), wanted.end());   // the same program gives the same record
    for (const std::string& name : wanted) {
      ObjectRef key = ObjectRef::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
      PyObject* value = PyDict_GetItemWithError(namespaces_[n].dict, key.get());
      PyErr_Clear();
      if (!value || name == "__builtins__" || name == "__name__") continue;
      const ObjectId k = text(name), v = add(value);
      at(namespaces_[n].id).items.push_back(k);
      at(namespaces_[n].id).items.push_back(v);
      any = true;
    }
  }
  return any;
}

bool ObjectWriter::describe_code(PyObject* o, ObjectId id) {
  const auto wrap = [&](const char* kind, std::initializer_list<PyObject*> parts) {
    std::vector<ObjectId> items;
    for (PyObject* p : parts) items.push_back(p ? add(p) : none());
    at(id).kind = kind;
    at(id).items = std::move(items);
    return true;
  };
  if (PyCode_Check(o)) {
    ObjectRef bytes = ObjectRef::steal(PyMarshal_WriteObjectToString(o, Py_MARSHAL_VERSION));
    if (!bytes) { PyErr_Clear(); make_opaque(id, o, "its constants have no marshalled form"); return true; }
    auto digest = blobs_.put(std::as_bytes(std::span(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())))));
    if (!digest.ok()) { if (failed_.empty()) failed_ = digest.error().text(); return false; }
    auto* c = reinterpret_cast<PyCodeObject*>(o);
    at(id).kind = "code";
    at(id).blob = *digest;
    at(id).name = utf8(c->co_qualname);
    at(id).text = utf8(c->co_filename) + ":" + std::to_string(c->co_firstlineno);
    note_names(o);
    return true;
  }
  if (PyFunction_Check(o)) return describe_function(o, id);
  if (PyCell_Check(o)) {
    std::vector<ObjectId> items;
    if (PyObject* inside = PyCell_GET(o)) items.push_back(add(inside));
    at(id).kind = "cell";
    at(id).items = std::move(items);
    return true;
  }
  if (PyMethod_Check(o)) return wrap("method", {PyMethod_GET_FUNCTION(o), PyMethod_GET_SELF(o)});
  PyTypeObject* t = Py_TYPE(o);
  const auto part = [&](const char* name) {   // of C types only
    ObjectRef p = ObjectRef::steal(PyObject_GetAttrString(o, name));
    if (!p) PyErr_Clear();
    kept_.push_back(p);
    return p.get();
  };
  if (t == &PyStaticMethod_Type) return wrap("staticmethod", {part("__func__")});
  if (t == &PyClassMethod_Type) return wrap("classmethod", {part("__func__")});
  if (t == &PyProperty_Type) return wrap("property", {part("fget"), part("fset"), part("fdel"), part("__doc__")});
  if (t == types().partial) {
    PyObject *function = part("func"), *args = part("args"), *keywords = part("keywords");
    if (!function || !args || !keywords || !PyTuple_CheckExact(args) || !PyDict_CheckExact(keywords)) return false;
    const ObjectId f = add(function), a = add(args), k = dict_of(keywords);
    at(id).kind = "partial";
    at(id).items = {f, a, k};
    return true;
  }
  return false;
}

bool ObjectWriter::describe_function(PyObject* o, ObjectId id) {
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  const auto known = ids_.find(f->func_code);
  const ObjectId code_id = known != ids_.end() ? known->second : start(f->func_code, "none");
  if (at(code_id).kind == "none") describe_code(f->func_code, code_id);
  if (at(code_id).kind != "code") { make_opaque(id, o, "its code has no marshalled form"); return true; }
  const ObjectId scope = scope_of(f->func_globals);
  const ObjectId defaults = add(f->func_defaults), keyword_defaults = f->func_kwdefaults ? dict_of(f->func_kwdefaults) : kAbsent;
  const ObjectId attributes = f->func_dict && PyDict_GET_SIZE(f->func_dict) ? dict_of(f->func_dict) : kAbsent;
  std::vector<ObjectId> cells;
  if (f->func_closure)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f->func_closure); ++i) cells.push_back(add(PyTuple_GET_ITEM(f->func_closure, i)));
  Object& r = at(id);
  r.kind = "function";
  r.name = utf8(f->func_qualname);
  r.text = utf8(f->func_name);
  r.module = utf8(f->func_module);
  r.code = code_id;
  r.scope = scope;
  r.defaults = defaults;
  r.keyword_defaults = keyword_defaults;
  r.attributes = attributes;
  r.items = std::move(cells);
  return true;
}

ObjectId ObjectWriter::add_function(PyObject* o) {
  const ObjectId id = start(o, "none");
  describe_function(o, id);
  return id;
}

bool ObjectWriter::describe_class(PyObject* o, ObjectId id) {
  if (!PyType_Check(o)) return false;
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  auto* heap = reinterpret_cast<PyHeapTypeObject*>(t);
  std::vector<ObjectId> items;
  at(id).module = module_of_type(t);
  at(id).name = utf8(heap->ht_qualname);
  at(id).text = utf8(heap->ht_name);
  if (types().enum_meta && PyType_IsSubtype(Py_TYPE(o), types().enum_meta)) {
    PyObject* members = bytecode::in_type_dict(t, "_member_map_");
    if (!members || !PyDict_Check(members) || !t->tp_bases || PyTuple_GET_SIZE(t->tp_bases) != 1) { make_opaque(id, o, "an enumeration with several bases"); return true; }
    items.push_back(add(PyTuple_GET_ITEM(t->tp_bases, 0)));
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(members, &position, &key, &value)) {
      ObjectRef dict = ObjectRef::steal(instance_dict(value));
      PyObject* inner = dict ? PyDict_GetItemString(dict.get(), "_value_") : nullptr;
      if (!inner) { make_opaque(id, o, "an enumeration whose members have no value"); return true; }
      items.push_back(add(key));
      items.push_back(add(inner));
    }
    at(id).kind = "enum_class";
    at(id).items = std::move(items);
    return true;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_bases); ++i) items.push_back(add(PyTuple_GET_ITEM(t->tp_bases, i)));
  const ObjectId meta = add(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  const ObjectId attributes = start(nullptr, "dict");
  std::vector<ObjectId> pairs;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(bytecode::dict_of_type(t), &position, &key, &value)) {
    const std::string name = utf8(key);
    // What making the class again makes again, and annotations, which are for readers.
    if (name == "__dict__" || name == "__weakref__" || name == "__annotations__" || name == "_abc_impl" || name == "__abstractmethods__" || name == "__module__" || name == "__qualname__" ||
        name == "__static_attributes__" || name == "__firstlineno__" || Py_TYPE(value) == types().member || Py_TYPE(value) == types().getset) continue;
    pairs.push_back(add(key));
    pairs.push_back(add(value));
  }
  at(attributes).items = std::move(pairs);
  Object& r = at(id);
  r.kind = "class";
  r.items = std::move(items);
  r.type = meta;
  r.attributes = attributes;
  return true;
}

bool ObjectWriter::describe_instance(PyObject* o, ObjectId id) {
  PyTypeObject* t = Py_TYPE(o);
  auto* klass = reinterpret_cast<PyObject*>(t);
  if (types().enum_meta && PyType_IsSubtype(Py_TYPE(klass), types().enum_meta)) {
    ObjectRef dict = ObjectRef::steal(instance_dict(o));
    PyObject* name = dict ? PyDict_GetItemString(dict.get(), "_name_") : nullptr;
    if (!name || !PyUnicode_Check(name)) { make_opaque(id, o, "a combination of named values"); return true; }
    const ObjectId y = add(klass);
    at(id).kind = "enum_member";
    at(id).name = utf8(name);
    at(id).type = y;
    return true;
  }
  const bool plain_object = t == &PyBaseObject_Type;
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) && !plain_object && !PyExceptionInstance_Check(o)) return false;
  if ((t->tp_flags & Py_TPFLAGS_HEAPTYPE) && is_made_in_c(t)) return false;
  // What a subclass of a C type holds beside its attributes.
  PyTypeObject* base = t;
  while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
  ObjectRef inside;
  if (base == &PyList_Type) inside = ObjectRef::steal(PyList_GetSlice(o, 0, PyList_GET_SIZE(o)));
  else if (base == &PyTuple_Type) inside = ObjectRef::steal(PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o) + 1));
  else if (base == &PyDict_Type || base == types().ordered_dict) {
    inside = ObjectRef::steal(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(o, &position, &key, &value)) PyDict_SetItem(inside.get(), key, value);
  } else if (base == &PyLong_Type) inside = ObjectRef::steal(PyNumber_Long(o));
  else if (base == &PyFloat_Type) inside = ObjectRef::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(o)));
  else if (base == &PyUnicode_Type) inside = ObjectRef::steal(PyUnicode_FromObject(o));
  else if (PyExceptionInstance_Check(o)) inside = ObjectRef::steal(PyObject_GetAttrString(o, "args"));
  else if (base != &PyBaseObject_Type) return false;
  PyErr_Clear();
  if (inside && base == &PyTuple_Type && !PyTuple_CheckExact(inside.get())) {
    inside = ObjectRef::steal(PyTuple_New(PyTuple_GET_SIZE(o)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) PyTuple_SET_ITEM(inside.get(), i, Py_NewRef(PyTuple_GET_ITEM(o, i)));
  }
  const ObjectId y = add(klass);
  ObjectRef dict = ObjectRef::steal(instance_dict(o));
  const ObjectId attributes = dict && PyDict_GET_SIZE(dict.get()) ? dict_of(dict.get()) : kAbsent;
  ObjectId content = kAbsent;
  if (inside) {
    content = add(inside.get());
    kept_.push_back(inside);
  }
  std::vector<ObjectId> slots;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
    auto* c = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i));
    if (!(c->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(bytecode::dict_of_type(c), &position, &key, &value)) {
      if (Py_TYPE(value) != types().member) continue;
      ObjectRef held = ObjectRef::steal(Py_TYPE(value)->tp_descr_get(value, o, klass));   // of C
      if (!held) { PyErr_Clear(); continue; }
      slots.push_back(text(utf8(key)));
      slots.push_back(add(held.get()));
    }
  }
  Object& r = at(id);
  r.kind = "instance";
  r.type = y;
  r.attributes = attributes;
  r.content = content;
  r.items = std::move(slots);
  return true;
}

base::Status ObjectWriter::finish(uint64_t max_bytes) {
  do {
    while (!waiting_.empty()) {
      if (record_.objects.size() > kMostObjects) return base::Error{.what = "the frame reaches more than " + std::to_string(kMostObjects) + " objects"};
      const auto [o, id] = waiting_.front();
      waiting_.pop_front();
      describe(o, id);
      PyErr_Clear();
    }
  } while (fill_namespaces());
  if (!failed_.empty()) return base::Error{.what = "a part of the record could not be written", .because = failed_};
  // A class whose metaclass or base has no form as data has none either, and so on to its instances.
  for (bool again = true; again;) {
    again = false;
    for (auto& [o, id] : ids_) {
      Object& r = at(id);
      const bool is_class = r.kind == "class" || r.kind == "enum_class";
      const auto broken = [&](ObjectId part) { const std::string& k = part == kAbsent ? std::string("import") : at(part).kind; return k != "class" && k != "import" && k != "enum_class"; };
      if ((is_class && (broken(r.type) || std::any_of(r.items.begin(), r.kind == "class" ? r.items.end() : r.items.begin() + 1, broken))) || ((r.kind == "instance" || r.kind == "enum_member") && broken(r.type))) {
        make_opaque(id, o, "its class has no form as data");
        again = true;
      }
    }
  }
  std::vector<c10::IValue> values;
  for (const ObjectRef& t : tensors_) values.emplace_back(guards::unwrap_tensor(t.get()));
  auto saved = tensor::save_inputs(blobs_, values, {.max_bytes = max_bytes});
  if (!saved.ok()) return saved.error();
  record_.tensors = std::move(saved).value();
  return {};
}

}  // namespace cutaway::replay
