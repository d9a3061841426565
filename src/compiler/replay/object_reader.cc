#include "compiler/replay/object_reader.h"

#include <marshal.h>

#include <algorithm>

#include "compiler/frames/compiled_function.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/report.h"
#include "compiler/guards/tensor_object.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::replay {

using bytecode::ObjectRef;
using record::kAbsent;
using record::Object;
using record::ObjectId;

namespace {

constexpr int kMostDepth = 3000;

struct Unrecorded {
  PyObject_HEAD
  PyObject* type_name;
};
void free_unrecorded(PyObject* o) {
  Py_XDECREF(reinterpret_cast<Unrecorded*>(o)->type_name);
  Py_TYPE(o)->tp_free(o);
}
PyObject* unrecorded_repr(PyObject* o) { return PyUnicode_FromFormat("<%U that was not recorded>", reinterpret_cast<Unrecorded*>(o)->type_name); }

ObjectRef text(std::string_view s) { return ObjectRef::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "strict")); }

ObjectRef attribute_of(const char* module, const std::string& name) {
  ObjectRef at = ObjectRef::steal(PyImport_ImportModule(module));
  std::string rest = name;
  while (at && !rest.empty()) {
    const size_t dot = rest.find('.');
    at = ObjectRef::steal(PyObject_GetAttrString(at.get(), rest.substr(0, dot).c_str()));
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
  }
  return at;
}

}  // namespace

PyTypeObject* unrecorded_type() {
  static PyTypeObject type = [] {
    PyTypeObject t = {PyVarObject_HEAD_INIT(nullptr, 0)};
    t.tp_name = "cutaway.Unrecorded";
    t.tp_basicsize = sizeof(Unrecorded);
    t.tp_flags = Py_TPFLAGS_DEFAULT;
    t.tp_doc = "Stands for an object that a frame's record could not hold.";
    t.tp_dealloc = free_unrecorded;
    t.tp_repr = unrecorded_repr;
    return t;
  }();
  static const bool ready = PyType_Ready(&type) == 0;
  return ready ? &type : nullptr;
}

std::nullptr_t ObjectReader::fail(std::string what) {
  if (failed_.empty()) failed_ = std::move(what);
  PyErr_Clear();
  return nullptr;
}

base::Status ObjectReader::make_all() {
  made_.assign(record_.objects.size(), {});
  making_.assign(record_.objects.size(), false);
  auto values = tensor::load_inputs(record_.tensors, blobs_);
  if (!values.ok()) return values.error();
  for (const c10::IValue& v : *values) {
    ObjectRef t = ObjectRef::steal(guards::wrap_tensor(v.toTensor()));
    if (!t) return base::Error{.what = "a tensor cannot be made again", .because = frames::raised_text()};
    tensors_.push_back(std::move(t));
  }
  // Cells and classes first: functions and instances need them, and whatever is made on the way is filled when all are there.
  for (size_t i = 0; i < record_.objects.size(); ++i)
    if (!make(static_cast<ObjectId>(i))) return base::Error{.what = "object " + std::to_string(i) + " (" + record_.objects[i].kind + ") cannot be made again", .because = failed_};
  // Attributes before what needs a hash: a __hash__ of the record's may look at them.
  const auto order = [&](ObjectId id) { const std::string& k = object(id).kind; return k == "instance" || k == "cell" || k == "namespace" || k == "class" ? 0 : k == "list" || k == "deque" ? 1 : 2; };
  std::stable_sort(to_fill_.begin(), to_fill_.end(), [&](ObjectId a, ObjectId b) { return order(a) < order(b); });
  for (ObjectId id : to_fill_)
    if (!fill(id, object(id))) return base::Error{.what = "object " + std::to_string(id) + " (" + object(id).kind + ") cannot be filled", .because = failed_.empty() ? frames::raised_text() : failed_};
  for (const record::Mark& m : record_.marks) {
    using frames::Mark;
    const Mark mark = m.mark == "graph_break" ? Mark::graph_break : m.mark == "allow_in_graph" ? Mark::allow_in_graph : m.mark == "constant_result" ? Mark::constant_result : Mark::reorderable;
    frames::mark_function(at(m.object), mark);
  }
  return {};
}

PyObject* ObjectReader::make(ObjectId id) {
  auto& place = made_[static_cast<size_t>(id)];
  if (place) return place.get();
  if (making_[static_cast<size_t>(id)]) return fail("it contains itself where that is not possible (object " + std::to_string(id) + ", " + object(id).kind + ")");
  if (depth_ > kMostDepth) return fail("it nests deeper than " + std::to_string(kMostDepth) + " objects");
  making_[static_cast<size_t>(id)] = true;
  ++depth_;
  ObjectRef made = build(id, object(id));
  --depth_;
  making_[static_cast<size_t>(id)] = false;
  if (!made) {
    if (failed_.empty()) failed_ = PyErr_Occurred() ? frames::raised_text() : "it makes no sense";
    PyErr_Clear();
    return nullptr;
  }
  if (!made_[static_cast<size_t>(id)]) made_[static_cast<size_t>(id)] = std::move(made);
  return made_[static_cast<size_t>(id)].get();
}

ObjectRef ObjectReader::tuple_of(const std::vector<ObjectId>& items, size_t from) {
  ObjectRef t = ObjectRef::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size() - from)));
  for (size_t i = from; i < items.size(); ++i) {
    PyObject* part = make(items[i]);
    if (!part) return {};
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i - from), Py_NewRef(part));
  }
  return t;
}

ObjectRef ObjectReader::build_plain(const Object& o) {
  const std::string& k = o.kind;
  if (k == "none") return ObjectRef::borrow(Py_None);
  if (k == "true") return ObjectRef::borrow(Py_True);
  if (k == "false") return ObjectRef::borrow(Py_False);
  if (k == "ellipsis") return ObjectRef::borrow(Py_Ellipsis);
  if (k == "not_implemented") return ObjectRef::borrow(Py_NotImplemented);
  if (k == "int") return ObjectRef::steal(PyLong_FromString(o.text.c_str(), nullptr, 16));
  if (k == "float") {
    ObjectRef s = text(o.text);
    return s ? ObjectRef::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyFloat_Type), "fromhex", "O", s.get())) : ObjectRef();
  }
  if (k == "complex") {
    PyObject *re = make(o.items[0]), *im = make(o.items[1]);
    return re && im && PyFloat_Check(re) && PyFloat_Check(im) ? ObjectRef::steal(PyComplex_FromDoubles(PyFloat_AS_DOUBLE(re), PyFloat_AS_DOUBLE(im))) : ObjectRef();
  }
  if (k == "str") {
    ObjectRef s = text(o.text);   // names are compared by identity here and there
    PyObject* p = s.release();
    if (p) PyUnicode_InternInPlace(&p);
    return ObjectRef::steal(p);
  }
  if (k == "bytes" || k == "bytearray" || k == "code") {
    auto blob = blobs_.get(o.blob);
    if (!blob.ok()) return ObjectRef::steal(fail(blob.error().text()));
    const char* data = static_cast<const char*>(blob->data());
    const auto size = static_cast<Py_ssize_t>(blob->size());
    if (k == "bytes") return ObjectRef::steal(PyBytes_FromStringAndSize(data, size));
    if (k == "bytearray") return ObjectRef::steal(PyByteArray_FromStringAndSize(data, size));
    ObjectRef code = ObjectRef::steal(PyMarshal_ReadObjectFromString(data, size));
    if (code && !PyCode_Check(code.get())) return ObjectRef::steal(fail("the blob holds no code"));
    return code;
  }
  if (k == "dtype" || k == "layout" || k == "memory_format") return attribute_of("torch", o.text);
  if (k == "device") {
    ObjectRef type = attribute_of("torch", "device"), s = text(o.text);
    return type && s ? ObjectRef::steal(PyObject_CallOneArg(type.get(), s.get())) : ObjectRef();
  }
  return {};
}

ObjectRef ObjectReader::build(ObjectId id, const Object& o) {
  const std::string& k = o.kind;
  const auto later = [&](PyObject* made) { to_fill_.push_back(id); return ObjectRef::steal(made); };
  if (k == "tuple") return tuple_of(o.items);
  if (k == "list") return later(PyList_New(0));
  if (k == "dict") return later(PyDict_New());
  if (k == "set") return later(PySet_New(nullptr));
  if (k == "cell") return later(PyCell_New(nullptr));
  if (k == "frozenset") { ObjectRef t = tuple_of(o.items); return t ? ObjectRef::steal(PyFrozenSet_New(t.get())) : ObjectRef(); }
  if (k == "ordered_dict") { ObjectRef c = attribute_of("collections", "OrderedDict"); return c ? later(PyObject_CallNoArgs(c.get())) : ObjectRef(); }
  if (k == "defaultdict") {
    ObjectRef c = attribute_of("collections", "defaultdict");
    PyObject* factory = o.content == kAbsent ? Py_None : make(o.content);
    return c && factory ? later(PyObject_CallOneArg(c.get(), factory)) : ObjectRef();
  }
  if (k == "deque") {
    ObjectRef c = attribute_of("collections", "deque"), none = tuple_of({});
    ObjectRef most = o.text.empty() ? ObjectRef::borrow(Py_None) : ObjectRef::steal(PyLong_FromString(o.text.c_str(), nullptr, 10));
    return c && most ? later(PyObject_CallFunctionObjArgs(c.get(), none.get(), most.get(), nullptr)) : ObjectRef();
  }
  if (k == "slice") {
    PyObject *a = make(o.items[0]), *b = make(o.items[1]), *c = make(o.items[2]);
    return a && b && c ? ObjectRef::steal(PySlice_New(a, b, c)) : ObjectRef();
  }
  if (k == "range") { ObjectRef t = tuple_of(o.items); return t ? ObjectRef::steal(PyObject_Call(reinterpret_cast<PyObject*>(&PyRange_Type), t.get(), nullptr)) : ObjectRef(); }
  if (k == "size") {
    ObjectRef c = attribute_of("torch", "Size"), t = tuple_of(o.items);
    return c && t ? ObjectRef::steal(PyObject_CallOneArg(c.get(), t.get())) : ObjectRef();
  }
  if (k == "operator") {   // aten::add.Tensor
    const size_t colon = o.text.find("::"), dot = o.text.rfind('.');
    if (colon == std::string::npos) return ObjectRef::steal(fail("\"" + o.text + "\" is no operator"));
    const bool overload = dot != std::string::npos && dot > colon;
    const std::string name = o.text.substr(0, colon) + "." + o.text.substr(colon + 2, (overload ? dot : o.text.size()) - colon - 2) + "." + (overload ? o.text.substr(dot + 1) : "default");
    return attribute_of("torch", "ops." + name);
  }
  if (k == "tensor") return build_tensor(o);
  if (k == "import") {
    ObjectRef found = attribute_of(o.module.c_str(), o.name);
    if (!found) return ObjectRef::steal(fail(o.module + (o.name.empty() ? "" : "." + o.name) + " is not here: " + frames::raised_text()));
    return found;
  }
  if (k == "library_namespace") {
    ObjectRef m = ObjectRef::steal(PyImport_ImportModule(o.module.c_str()));
    return m && PyModule_Check(m.get()) ? ObjectRef::borrow(PyModule_GetDict(m.get())) : ObjectRef();
  }
  if (k == "namespace") return later(PyDict_New());
  if (k == "module") {
    PyObject* scope = make(o.scope);
    ObjectRef m = ObjectRef::steal(PyModule_New(o.name.c_str()));
    if (!scope || !m) return {};
    // A module's dictionary cannot be given to it: it gets the same names instead, when they are there.
    to_fill_.push_back(id);
    return m;
  }
  if (k == "function") return build_function(o);
  if (k == "method") {
    PyObject *f = make(o.items[0]), *self = make(o.items[1]);
    return f && self ? ObjectRef::steal(PyMethod_New(f, self)) : ObjectRef();
  }
  if (k == "builtin_method") { PyObject* self = make(o.items[0]); return self ? ObjectRef::steal(PyObject_GetAttrString(self, o.name.c_str())) : ObjectRef(); }
  if (k == "partial") {
    ObjectRef c = attribute_of("functools", "partial");
    PyObject *f = make(o.items[0]), *args = make(o.items[1]);
    if (!c || !f || !args) return {};
    ObjectRef keywords = ObjectRef::steal(PyDict_New());
    const Object& names = object(o.items[2]);
    for (size_t i = 0; i < names.items.size(); i += 2) {
      PyObject *key = make(names.items[i]), *value = make(names.items[i + 1]);
      if (!key || !value || PyDict_SetItem(keywords.get(), key, value) < 0) return {};
    }
    ObjectRef all = ObjectRef::steal(PyTuple_New(1 + PyTuple_GET_SIZE(args)));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(f));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    return ObjectRef::steal(PyObject_Call(c.get(), all.get(), keywords.get()));
  }
  if (k == "compiled") return ObjectRef::borrow(make(o.items[0]));   // to capture it is what it compiles
  if (k == "disabled") { PyObject* f = make(o.items[0]); return f ? ObjectRef::steal(frames::make_disabled_function(f)) : ObjectRef(); }
  if (k == "mappingproxy") { PyObject* dict = make(o.content); return dict ? ObjectRef::steal(PyDictProxy_New(dict)) : ObjectRef(); }
  if (k == "tuple_getter") {
    ObjectRef type = attribute_of("_collections", "_tuplegetter"), arguments = tuple_of(o.items);
    return type && arguments ? ObjectRef::steal(PyObject_Call(type.get(), arguments.get(), nullptr)) : ObjectRef();
  }
  if (k == "staticmethod") { PyObject* f = make(o.items[0]); return f ? ObjectRef::steal(PyStaticMethod_New(f)) : ObjectRef(); }
  if (k == "classmethod") { PyObject* f = make(o.items[0]); return f ? ObjectRef::steal(PyClassMethod_New(f)) : ObjectRef(); }
  if (k == "property") { ObjectRef t = tuple_of(o.items); return t ? ObjectRef::steal(PyObject_Call(reinterpret_cast<PyObject*>(&PyProperty_Type), t.get(), nullptr)) : ObjectRef(); }
  if (k == "class" || k == "enum_class") return build_class(id, o);
  if (k == "enum_member") {
    PyObject* c = make(o.type);
    return c && PyType_Check(c) ? ObjectRef::steal(PyObject_GetAttrString(c, o.name.c_str())) : ObjectRef();
  }
  if (k == "instance") { to_fill_.push_back(id); return build_instance(o); }
  if (k == "opaque") {
    PyTypeObject* t = unrecorded_type();
    auto* made = t ? PyObject_New(Unrecorded, t) : nullptr;
    if (!made) return {};
    made->type_name = text(o.text).release();
    return ObjectRef::steal(reinterpret_cast<PyObject*>(made));
  }
  return build_plain(o);
}

ObjectRef ObjectReader::build_tensor(const Object& o) {
  ObjectRef t = tensors_[static_cast<size_t>(o.tensor)];
  if (o.text == "parameter" || o.text == "buffer") {
    ObjectRef c = attribute_of("torch.nn", o.text == "parameter" ? "Parameter" : "Buffer");
    if (!c) return {};
    const bool grad = guards::unwrap_tensor(t.get()).requires_grad();
    ObjectRef plain = ObjectRef::steal(PyObject_CallMethod(t.get(), "detach", nullptr));
    if (!plain) return {};
    ObjectRef made = o.text == "parameter" ? ObjectRef::steal(PyObject_CallFunction(c.get(), "OO", plain.get(), grad ? Py_True : Py_False)) : ObjectRef::steal(PyObject_CallOneArg(c.get(), plain.get()));
    if (!made) return {};
    t = std::move(made);
  }
  if (o.attributes != kAbsent) {
    const Object& dict = object(o.attributes);
    for (size_t i = 0; i < dict.items.size(); i += 2) {
      PyObject *key = make(dict.items[i]), *value = make(dict.items[i + 1]);
      if (!key || !value || PyObject_GenericSetAttr(t.get(), key, value) < 0) return {};
    }
  }
  return t;
}

ObjectRef ObjectReader::build_function(const Object& o) {
  PyObject *code = make(o.code), *scope = make(o.scope);
  if (!code || !scope || !PyDict_Check(scope)) return {};
  auto* c = reinterpret_cast<PyCodeObject*>(code);
  if (c->co_nfreevars != static_cast<int>(o.items.size())) return ObjectRef::steal(fail("its closure has " + std::to_string(o.items.size()) + " cells, its code " + std::to_string(c->co_nfreevars)));
  ObjectRef name = text(o.name);
  ObjectRef f = ObjectRef::steal(PyFunction_NewWithQualName(code, scope, name.get()));
  if (!f) return {};
  if (!o.items.empty()) {
    ObjectRef closure = tuple_of(o.items);
    if (!closure || PyFunction_SetClosure(f.get(), closure.get()) < 0) return {};
  }
  if (o.defaults != kAbsent) {
    PyObject* defaults = make(o.defaults);
    if (!defaults || PyFunction_SetDefaults(f.get(), defaults) < 0) return {};
  }
  if (o.keyword_defaults != kAbsent) {
    PyObject* defaults = make(o.keyword_defaults);   // filled later, the same dictionary
    if (!defaults || PyFunction_SetKwDefaults(f.get(), defaults) < 0) return {};
  }
  if (!o.module.empty()) {
    ObjectRef module = text(o.module);
    if (!module || PyObject_SetAttrString(f.get(), "__module__", module.get()) < 0) return {};
  }
  if (!o.text.empty()) {
    ObjectRef short_name = text(o.text);
    if (!short_name || PyObject_SetAttrString(f.get(), "__name__", short_name.get()) < 0) return {};
  }
  if (o.attributes != kAbsent) {
    PyObject* attributes = make(o.attributes);
    if (!attributes || PyObject_SetAttrString(f.get(), "__dict__", attributes) < 0) return {};
  }
  return f;
}

namespace {
// What a class needs to be made; the rest of its attributes may be instances of it and comes afterwards.
bool is_early(const std::string& kind) {
  return kind == "function" || kind == "staticmethod" || kind == "classmethod" || kind == "property" || kind == "str" || kind == "int" || kind == "none" || kind == "true" || kind == "false" ||
         kind == "float" || kind == "import" || kind == "tuple" || kind == "tuple_getter";
}
}  // namespace

ObjectRef ObjectReader::build_class(ObjectId id, const Object& o) {
  if (o.kind == "enum_class") {
    PyObject* base = make(o.items[0]);
    if (!base || !PyType_Check(base)) return {};
    ObjectRef name = text(o.text), members = ObjectRef::steal(PyDict_New());
    for (size_t i = 1; i + 1 < o.items.size(); i += 2) {
      PyObject *key = make(o.items[i]), *value = make(o.items[i + 1]);
      if (!key || !value || PyDict_SetItem(members.get(), key, value) < 0) return {};
    }
    return ObjectRef::steal(PyObject_CallFunctionObjArgs(base, name.get(), members.get(), nullptr));
  }
  PyObject* meta = make(o.type);
  if (!meta || !PyType_Check(meta) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(meta), &PyType_Type)) return ObjectRef::steal(fail("its metaclass is none"));
  ObjectRef bases = tuple_of(o.items), name = text(o.text), space = ObjectRef::steal(PyDict_New());
  if (!bases || !name) return {};
  ObjectRef module = text(o.module), qualname = text(o.name);
  PyDict_SetItemString(space.get(), "__module__", module.get());
  PyDict_SetItemString(space.get(), "__qualname__", qualname.get());
  const Object& dict = object(o.attributes);
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    if (!is_early(object(dict.items[i + 1]).kind)) continue;
    PyObject *key = make(dict.items[i]), *value = make(dict.items[i + 1]);
    if (!key || !value || PyDict_SetItem(space.get(), key, value) < 0) return {};
  }
  ObjectRef made = ObjectRef::steal(PyObject_CallFunctionObjArgs(meta, name.get(), bases.get(), space.get(), nullptr));
  if (made && !PyType_Check(made.get())) return ObjectRef::steal(fail("its metaclass gave no class"));
  if (made) to_fill_.push_back(id);
  return made;
}

ObjectRef ObjectReader::build_instance(const Object& o) {
  PyObject* c = make(o.type);
  if (!c || !PyType_Check(c)) return ObjectRef::steal(fail("its class is none"));
  auto* t = reinterpret_cast<PyTypeObject*>(c);
  PyTypeObject* base = t;
  while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
  if (!base || !base->tp_new) return ObjectRef::steal(fail("instances of its class cannot be made"));
  ObjectRef arguments = ObjectRef::steal(PyTuple_New(0));
  if (o.content != kAbsent && base != &PyList_Type && !PyType_IsSubtype(base, &PyDict_Type)) {
    PyObject* content = make(o.content);
    if (!content) return {};
    if (PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
      if (!PyTuple_Check(content)) return ObjectRef::steal(fail("the arguments of an exception are a tuple"));
      arguments = ObjectRef::borrow(content);
    } else {
      arguments = ObjectRef::steal(PyTuple_Pack(1, content));
    }
  }
  return ObjectRef::steal(base->tp_new(t, arguments.get(), nullptr));   // no __new__ and no __init__ of the record's
}

bool ObjectReader::fill(ObjectId id, const Object& o) {
  PyObject* made = at(id);
  const std::string& k = o.kind;
  const auto pairs = [&](const std::vector<ObjectId>& items, auto&& store) {
    for (size_t i = 0; i < items.size(); i += 2)
      if (store(at(items[i]), at(items[i + 1])) < 0) return false;
    return true;
  };
  if (k == "list") {
    for (ObjectId part : o.items) if (PyList_Append(made, at(part)) < 0) return false;
    return true;
  }
  if (k == "set") {
    for (ObjectId part : o.items) if (PySet_Add(made, at(part)) < 0) return false;
    return true;
  }
  if (k == "deque") {
    for (ObjectId part : o.items) {
      ObjectRef none = ObjectRef::steal(PyObject_CallMethod(made, "append", "O", at(part)));
      if (!none) return false;
    }
    return true;
  }
  if (k == "cell") return o.items.empty() || PyCell_Set(made, at(o.items[0])) == 0;
  if (k == "dict" || k == "defaultdict" || k == "ordered_dict") return pairs(o.items, [&](PyObject* key, PyObject* v) { return k == "dict" ? PyDict_SetItem(made, key, v) : PyObject_SetItem(made, key, v); });
  if (k == "namespace") {
    ObjectRef name = text(o.name);
    if (PyDict_SetItemString(made, "__name__", name.get()) < 0 || PyDict_SetItemString(made, "__builtins__", PyEval_GetBuiltins()) < 0) return false;
    return pairs(o.items, [&](PyObject* key, PyObject* v) { return PyDict_SetItem(made, key, v); });
  }
  if (k == "module") {
    const Object& scope = object(o.scope);
    return pairs(scope.items, [&](PyObject* key, PyObject* v) { return PyDict_SetItem(PyModule_GetDict(made), key, v); });
  }
  if (k == "class") return fill_class(made, o);
  // An instance: content, attributes, slots, none through a method of the record's.
  if (o.content != kAbsent) {
    PyObject* content = at(o.content);
    if (PyList_Check(made) && PyList_Check(content)) {
      const Object& list = object(o.content);
      for (ObjectId part : list.items) if (PyList_Append(made, at(part)) < 0) return false;
    } else if (PyDict_Check(made)) {
      ObjectRef ordered = attribute_of("collections", "OrderedDict.__setitem__");
      const bool is_ordered = ordered && Py_TYPE(made)->tp_base && PyObject_HasAttrString(made, "move_to_end");
      const Object& dict = object(o.content);
      if (!pairs(dict.items, [&](PyObject* key, PyObject* v) {
            if (!is_ordered) return PyDict_SetItem(made, key, v);
            ObjectRef none = ObjectRef::steal(PyObject_CallFunctionObjArgs(ordered.get(), made, key, v, nullptr));
            return none ? 0 : -1;
          })) return false;
    }
  }
  if (o.attributes != kAbsent) {
    PyObject** place = _PyObject_GetDictPtr(made);
    ObjectRef dict = place && *place ? ObjectRef::borrow(*place) : ObjectRef::steal(PyObject_GenericGetDict(made, nullptr));
    if (!dict || !pairs(object(o.attributes).items, [&](PyObject* key, PyObject* v) { return PyDict_SetItem(dict.get(), key, v); })) return false;
  }
  return pairs(o.items, [&](PyObject* key, PyObject* v) {
    PyObject* slot = _PyType_Lookup(Py_TYPE(made), key);
    if (!slot || !Py_TYPE(slot)->tp_descr_set || Py_TYPE(slot)->tp_flags & Py_TPFLAGS_HEAPTYPE) { fail("it has no such slot"); return -1; }
    return Py_TYPE(slot)->tp_descr_set(slot, made, v);
  });
}

bool ObjectReader::fill_class(PyObject* made, const Object& o) {
  const Object& dict = object(o.attributes);
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    if (is_early(object(dict.items[i + 1]).kind)) continue;
    if (PyType_Type.tp_setattro(made, at(dict.items[i]), at(dict.items[i + 1])) < 0) return false;
  }
  return true;
}

}  // namespace cutaway::replay
