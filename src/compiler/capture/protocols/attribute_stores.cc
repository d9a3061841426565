// Setting and deleting attributes: Python's own way by hand, what is Python is inlined.
#include <Python.h>
#include <structmember.h>

#include <cstdint>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

namespace {
// A slot takes any object; what C keeps as a number or truth, it checks and converts.
int kept_type(PyObject* member) {
  const PyMemberDef& m = *reinterpret_cast<PyMemberDescrObject*>(member)->d_member;
  return m.flags & READONLY ? -1 : m.type;
}
}  // namespace

bool Attributes::setattr(Value* v, PyObject* name, Value* x) {
  const Tail tail = endings.take_tail();
  values.force(v);
  builtins.refuse_inside(v);
  if (name == names().__class__ && v->kind != Kind::object) stop("c-attribute", "the class of " + values.describe(v) + " is set");   // whether that is allowed depends on how C keeps both
  switch (v->kind) {
    case Kind::tensor: return leaves.set_tensor_attribute(v, name, x);
    case Kind::module:
      if (PyObject* own = _PyType_Lookup(Py_TYPE(v->real), name); own && is_data_descriptor(own)) stop("c-attribute", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is set");
      mappings.dict_set(module_dict(v), name, x);
      return true;
    case Kind::klass: {
      if (PyObject* own = own_method(Py_TYPE(v->real), names().__setattr__)) return calls.call(values.wrap_constant_object(own), {v, values.constant(name), x}) != nullptr;
      return classes.set_class_attribute(v, name, x);
    }
    case Kind::cell: if (name == names().cell_contents) { values.set_cell(v, x); return true; } break;
    case Kind::builtin: case Kind::opaque: stop("opaque-object", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is set");
    case Kind::function:
      if (!v->real) {
        Function& f = values.function(v);
        const Kind given = values.kind(x);
        const bool is_none = values.is_constant(x, Py_None);
        const bool fits = name == names().__name__ || name == names().__qualname__ ? given == Kind::constant && PyUnicode_CheckExact(x->real)
                          : name == names().__defaults__ ? is_none || x->type == &PyTuple_Type
                          : name == names().__kwdefaults__ || name == names().__annotations__ ? is_none || x->type == &PyDict_Type
                                                                                               : name != names().__dict__;
        if (!fits) stop("function-attribute-store", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of a function is set to " + values.describe(x));
        if (name == names().__name__) { f.name = values.as_constant(x); return true; }
        if (name == names().__qualname__) { f.qualname = values.as_constant(x); return true; }
        if (name == names().__defaults__) { f.defaults = x; return true; }
        if (name == names().__kwdefaults__) { f.keyword_defaults = x; return true; }
        if (name == names().__annotations__) { f.annotations = x; return true; }
        if (name == names().__code__ || name == names().__globals__ || name == names().__closure__) stop("function-attribute-store", "the code, globals or closure of a function is replaced");
        mappings.dict_set(instance_dict(v), name, x);
        return true;
      }
      if (PyObject* own = _PyType_Lookup(&PyFunction_Type, name)) { (void)own; stop("function-attribute-store", "an attribute of a function is set"); }
      mappings.dict_set(instance_dict(v), name, x);
      return true;
    default: break;
  }
  if (PyObject* set = own_method(v->type, names().__setattr__)) {
    if (set == known().module_setattr && v->kind == Kind::object && set_plain_module_attribute(v, name, x)) return true;
    endings.hand_on(tail);
    return calls.call(values.wrap_constant_object(set), {v, values.constant(name), x}) != nullptr;
  }
  endings.hand_on(tail);
  return generic_setattr(v, name, x);
}

// nn.Module.__setattr__ for what is neither a parameter, a module nor a buffer, before or after: an ordinary attribute.
bool Attributes::set_plain_module_attribute(Value* v, PyObject* name, Value* x) {
  const Kind k = values.kind(x);
  if (k == Kind::tensor || k == Kind::object || k == Kind::opaque || k == Kind::lazy) return false;
  Value* dict = instance_dict(v);
  if (!dict) return false;
  for (PyObject* part : {names()._parameters, names()._buffers, names()._modules}) {
    Value* d = mappings.dict_get(dict, part);
    if (!d || values.kind(d) != Kind::dict || mappings.dict_get(d, name)) return false;
  }
  if (classes.is_data_descriptor_value(classes.find_on_class(v->type, name))) return false;
  mappings.dict_set(dict, name, x);
  return true;
}

/// An object without a dictionary is asked to set or to delete an attribute for which it has no slot.
std::nullptr_t Attributes::raise_no_place(Value* v, PyObject* name) {
  const std::string type = v->type->tp_name, text = PyUnicode_AsUTF8(name);
  if (const Classes::FoundOnClass there = classes.find_on_class(v->type, name); there.object || there.stored) return exceptions.raise(PyExc_AttributeError, "'" + type + "' object attribute '" + text + "' is read-only");
  raise_no_attribute(v, name);
  if (PY_VERSION_HEX < 0x030D0000 || v->type->tp_setattro != PyObject_GenericSetAttr) return nullptr;
  exceptions.take_raised();
  return exceptions.raise(PyExc_AttributeError, "'" + type + "' object has no attribute '" + text + "' and no __dict__ for setting new attributes");
}

bool Attributes::generic_setattr(Value* v, PyObject* name, Value* x) {
  const Tail tail = endings.take_tail();
  values.force(v);
  if (tracebacks.is_traceback(v)) stop("exception-attribute", "an attribute of a traceback is set");
  PyObject* found = classes.find_on_class(v->type, name).object;
  if (found && is_data_descriptor(found)) {
    PyTypeObject* t = Py_TYPE(found);
    if (t->tp_descr_set == PyProperty_Type.tp_descr_set) {
      PyObject* setter = PyObject_GetAttrString(found, "fset");
      if (!setter || setter == Py_None) { Py_XDECREF(setter); PyErr_Clear(); exceptions.raise(PyExc_AttributeError, std::string("property '") + PyUnicode_AsUTF8(name) + "' of '" + qualified_name(v->type) + "' object has no setter"); return false; }
      endings.hand_on(tail);
      return calls.call(values.wrap_constant_object(values.keep(setter)), {v, x}) != nullptr;
    }
    if (t == known().member_descriptor && v->kind == Kind::object) {
      const int kept = kept_type(found);
      if (kept != T_OBJECT_EX && kept != T_OBJECT && !(kept == T_BOOL && values.type_of(x) == &PyBool_Type)) stop("c-attribute", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is set to " + values.describe(x));
      auto& slots = body<Object>(v).slots;
      for (auto& s : slots)
        if (PyUnicode_Compare(s.first, name) == 0) { s.second = x; effects.mark_changed(v); body<Object>(v).written.push_back(name); return true; }
      slots.emplace_back(name, x);
      body<Object>(v).written.push_back(name);
      effects.mark_changed(v);
      return true;
    }
    if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) && !v->real) {
      if (PyUnicode_CompareWithASCIIString(name, "__traceback__") == 0) return tracebacks.set_traceback(v, x);
      // C checks or converts what it is given.
      const bool is_link = name == names().__cause__ || name == names().__context__;
      const bool fits = name == names().args ? values.type_of(x) == &PyTuple_Type : is_link && (values.is_constant(x, Py_None) || (values.kind(x) == Kind::object && PyType_IsSubtype(x->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))));
      if (!fits) stop("exception-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of an exception is set to " + values.describe(x));
      if (name == names().args) { body<Object>(v).arguments = x; return true; }
      auto& slots = body<Object>(v).slots;
      const auto store = [&](PyObject* slot, Value* to) {
        for (auto& s : slots) if (PyUnicode_Compare(s.first, slot) == 0) { s.second = to; return; }
        slots.emplace_back(slot, to);
      };
      store(name, x);
      if (name == names().__cause__) store(names().__suppress_context__, values.boolean(true));
      return true;
    }
    if (Value* member = !classes.has_made_classes() ? nullptr : classes.member_of(found)) {
      PyObject* own = lookup_type(member->type, names().__set__);
      if (!own || Py_TYPE(own) != &PyFunction_Type) stop("c-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is set");
      return calls.call(values.wrap_constant_object(own), {member, v, x}) != nullptr;
    }
    if (v->kind == Kind::dict && !v->real && PyType_IsSubtype(v->type, known().defaultdict) && PyUnicode_CompareWithASCIIString(name, "default_factory") == 0) {
      body<Mapping>(v).default_factory = x;
      return true;
    }
    PyObject* set = _PyType_Lookup(t, names().__set__);
    if (set && Py_TYPE(set) == &PyFunction_Type) { endings.hand_on(tail); return calls.call(values.wrap_constant_object(set), {values.wrap_constant_object(found), v, x}) != nullptr; }
    stop("c-attribute", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is set");
  }
  if (v->kind == Kind::constant && is_user_class(v->type)) stop("constant-attribute-store", std::string("an attribute of an instance of ") + v->type->tp_name + " is set");
  Value* dict = instance_dict(v);
  if (!dict) return raise_no_place(v, name), false;
  mappings.dict_set(dict, name, x);
  return true;
}

bool Attributes::delattr(Value* v, PyObject* name) {
  const Tail tail = endings.take_tail();
  values.force(v);
  if (v->kind == Kind::klass) {
    if (PyObject* own = own_method(Py_TYPE(v->real), names().__delattr__)) return calls.call(values.wrap_constant_object(own), {v, values.constant(name)}) != nullptr;
    return classes.set_class_attribute(v, name, nullptr);
  }
  if (v->kind == Kind::tensor || v->kind == Kind::opaque || v->kind == Kind::module || v->kind == Kind::builtin)
    stop("delete-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is deleted");
  PyObject* del = own_method(v->type, names().__delattr__);
  endings.hand_on(tail);
  if (del) return calls.call(values.wrap_constant_object(del), {v, values.constant(name)}) != nullptr;
  return generic_delattr(v, name);
}

namespace {
// What deleting an empty slot says differs between patch releases: this Python is asked once.
bool words_of_delete_are_the_name() {
  static const bool answer = [] {
    PyObject* names = PyDict_New();
    PyObject* done = PyRun_String("class A:\n  __slots__ = ('a',)\ntry:\n  del A().a\nexcept AttributeError as e:\n  is_name = str(e) == 'a'", Py_file_input, names, names);
    const bool is_name = PyDict_GetItemString(names, "is_name") == Py_True;
    Py_XDECREF(done);
    Py_DECREF(names);
    PyErr_Clear();
    return is_name;
  }();
  return answer;
}
}  // namespace

bool Attributes::generic_delattr(Value* v, PyObject* name) {
  const Tail tail = endings.take_tail();
  PyObject* found = lookup_type(v->type, name);
  if (found && is_data_descriptor(found)) {
    if (Py_TYPE(found)->tp_descr_set == PyProperty_Type.tp_descr_set) {
      PyObject* deleter = PyObject_GetAttrString(found, "fdel");
      endings.hand_on(tail);
      if (deleter && deleter != Py_None) return calls.call(values.wrap_constant_object(values.keep(deleter)), {v}) != nullptr;
      if (deleter == Py_None) return exceptions.raise(PyExc_AttributeError, std::string("property '") + PyUnicode_AsUTF8(name) + "' of '" + qualified_name(v->type) + "' object has no deleter"), false;
    }
    endings.take_tail();
    if (Py_TYPE(found) == known().member_descriptor && v->kind == Kind::object) {
      if (kept_type(found) != T_OBJECT_EX) stop("delete-attribute", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is deleted");
      if (!apply_descriptor(found, v, nullptr, name, nullptr)) {
        if (words_of_delete_are_the_name() && exceptions.raised_is(PyExc_AttributeError)) { exceptions.take_raised(); exceptions.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name)); }
        return false;
      }
      for (auto& s : body<Object>(v).slots) if (PyUnicode_Compare(s.first, name) == 0) s.second = nullptr;
      body<Object>(v).written.push_back(name);
      effects.mark_changed(v);
      return true;
    }
    if (PyObject* own = _PyType_Lookup(Py_TYPE(found), names().__delete__); own && Py_TYPE(own) == &PyFunction_Type) return calls.call(values.wrap_constant_object(own), {values.wrap_constant_object(found), v}) != nullptr;
    stop("delete-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is deleted");
  }
  Value* dict = instance_dict(v);
  if (!dict) return raise_no_place(v, name), false;
  if (!mappings.dict_get(dict, name)) return raise_no_attribute(v, name), false;
  return mappings.dict_delete(dict, name);
}

}  // namespace cutaway::capture
