// Attributes of classes that the captured code writes to. What is found on a class is otherwise guarded by the class's version, as one; an
// attribute that the program writes would change that version at every call. So the first store to one starts the trace over, and from then on
// the attribute is data: read from the class's dictionary by a source, guarded alone, written to the model and replayed as an effect.
#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

bool is_dunder(PyObject* name) {
  const std::string_view text = PyUnicode_AsUTF8(name);
  return text.size() > 4 && text.substr(0, 2) == "__" && text.substr(text.size() - 2) == "__";
}

}  // namespace

bool ClassData::contains(PyTypeObject* t, PyObject* name) const {
  for (const auto& [type, written] : all)
    if (type.get() == reinterpret_cast<PyObject*>(t) && PyUnicode_Compare(written.get(), name) == 0) return true;
  return false;
}

Value* Classes::class_dict(PyTypeObject* t) {
  PyObject* real = bytecode::dict_of_type(t);
  if (is_made_class(reinterpret_cast<PyObject*>(t))) {   // nobody else sees it, and it changes while it is made
    Value* d = values.make_dict();
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(real, &at, &key, &value)) {
      Value* member = member_of(value);
      mappings.dict_set(d, key, member ? member : values.wrap_constant_object(value));
    }
    return d;
  }
  if (Value* seen = values.met(real)) return values.force(seen);
  Value* owner = values.force(values.wrap_constant_object(reinterpret_cast<PyObject*>(t)));
  return namespaces.namespace_dict(real, guards.sources().of(guards.sources().constant(owner->real), SourceKind::instance_dict), owner);
}

Value* Classes::make_proxy(Value* dict) {
  mappings.dict_load(dict);
  Value* v = values.new_value(Kind::dict, known().mappingproxy);
  v->body = dict->body;   // what is done to the dict shows
  proxies_[v] = dict;
  return v;
}

/// cls.__dict__: a view of everything that the class has itself.
Value* Classes::class_proxy(PyTypeObject* t) {
  Value* dict = class_dict(t);
  mappings.dict_load(dict);
  Value* v = values.new_value(Kind::dict, known().mappingproxy);
  v->body = dict->body;
  if (is_made_class(reinterpret_cast<PyObject*>(t))) return v;
  v->real = values.keep(PyObject_GenericGetAttr(reinterpret_cast<PyObject*>(t), names().__dict__));
  v->source = guards.sources().attr(guards.sources().constant(reinterpret_cast<PyObject*>(t)), names().__dict__);
  return v;
}

Classes::FoundOnClass Classes::find_on_class(PyTypeObject* t, PyObject* name) {
  if (class_data.all.empty()) return {attributes.lookup_type(t, name), nullptr};
  guards.add_type_version(t);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i)
    if (const FoundOnClass found = find_on_base(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i)), name); found.object || found.stored) return found;
  return {};
}

Classes::FoundOnClass Classes::find_on_base(PyTypeObject* base, PyObject* name) {
  if (class_data.contains(base, name)) return {nullptr, mappings.dict_get(class_dict(base), name)};
  PyObject* dict = bytecode::dict_of_type(base);
  PyObject* found = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
  if (!found) PyErr_Clear();
  return {found, nullptr};
}

bool Classes::is_data_descriptor_value(const FoundOnClass& found) {
  if (found.object) return attributes.is_data_descriptor(found.object);
  return found.stored && values.force(found.stored)->type && found.stored->type->tp_descr_set;
}

Value* Classes::apply_found(const FoundOnClass& found, Value* instance, Value* owner, PyObject* name, Value** self) {
  if (found.object) return attributes.apply_descriptor(found.object, instance, owner, name, self);
  Value* v = values.force(found.stored);
  if (v->kind == Kind::function) {
    if (!instance) return v;
    if (self) { *self = instance; return v; }
    return values.make_method(v, instance);
  }
  if (v->kind == Kind::constant || v->kind == Kind::builtin) return v->type->tp_descr_get ? attributes.apply_descriptor(v->real, instance, owner, name, self) : v;
  if (v->kind == Kind::object && v->type->tp_descr_get)
    stop("class-attribute-store", std::string("a descriptor is stored as the attribute ") + PyUnicode_AsUTF8(name) + " of a class");
  return v;
}

bool Classes::set_class_attribute(Value* v, PyObject* name, Value* x) {
  auto* t = reinterpret_cast<PyTypeObject*>(v->real);
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || (t->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) {
    exceptions.raise(PyExc_TypeError, std::string("cannot set '") + PyUnicode_AsUTF8(name) + "' attribute of immutable type '" + t->tp_name + "'");
    return false;
  }
  PyObject* on_meta = attributes.lookup_type(Py_TYPE(v->real), name);
  if (on_meta && is_data_descriptor(on_meta) && PyType_HasFeature(Py_TYPE(on_meta), Py_TPFLAGS_HEAPTYPE))   // a class of Python's: to set it on the stand-in would run it now
    stop("class-attribute-store", "the attribute " + std::string(PyUnicode_AsUTF8(name)) + " of " + values.describe(v) + " is set or deleted by a descriptor of its metaclass");
  if (is_made_class(v->real) && !(on_meta && Py_TYPE(on_meta) == &PyProperty_Type)) return set_made_attribute(t, name, x);
  if (on_meta && is_data_descriptor(on_meta)) {
    if (Py_TYPE(on_meta) == &PyProperty_Type && x) {
      PyObject* setter = PyObject_GetAttrString(on_meta, "fset");
      if (setter && setter != Py_None) return calls.call(values.wrap_constant_object(values.keep(setter)), {v, x}) != nullptr;
      Py_XDECREF(setter);
      PyErr_Clear();
    }
    stop("class-attribute-store", "the attribute " + std::string(PyUnicode_AsUTF8(name)) + " of " + values.describe(v) + " is set");
  }
  if (PyType_IsSubtype(known().tensor, t)) stop("class-attribute-store", "the attribute " + std::string(PyUnicode_AsUTF8(name)) + " of " + values.describe(v) + " is set, which every tensor has then");
  // What Python's own slots are made of, and what torch's and Python's own classes have, is not data.
  if (is_dunder(name)) stop("class-attribute-store", "the attribute " + std::string(PyUnicode_AsUTF8(name)) + " of " + values.describe(v) + " is set");
  if (!class_data.contains(t, name)) {
    class_data.all.emplace_back(guards::ObjectRef::borrow(v->real), guards::ObjectRef::borrow(name));
    throw StartOver{};
  }
  if (x) { mappings.dict_set(class_dict(t), name, x); return true; }
  Value* dict = class_dict(t);
  if (mappings.dict_get(dict, name)) return mappings.dict_delete(dict, name);
  exceptions.raise(PyExc_AttributeError, std::string("type object '") + t->tp_name + "' has no attribute '" + PyUnicode_AsUTF8(name) + "'");
  return false;
}

}  // namespace cutaway::capture
