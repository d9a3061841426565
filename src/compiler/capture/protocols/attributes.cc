// Attribute lookup by hand: the type's mro, the instance's dictionary, descriptors. Nothing of the user's runs; what is Python is inlined.
#include "compiler/capture/protocols/attributes.h"

#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

PyObject* Attributes::lookup_type(PyTypeObject* t, PyObject* name) {
  guards.add_type_version(t);
  return _PyType_Lookup(t, name);
}

bool Attributes::is_data_descriptor(PyObject* found) {
  if (is_user_class(Py_TYPE(found))) guards.add_type_version(Py_TYPE(found));
  return capture::is_data_descriptor(found);
}

PyObject* Attributes::own_method(PyTypeObject* t, PyObject* name) {
  PyObject* found = lookup_type(t, name);
  if (!found || !is_user_class(t)) return nullptr;
  if (Py_TYPE(found) == &PyFunction_Type) return found;
  if (is_enum(t) || PyType_IsSubtype(t, known().tensor) || PyInstanceMethod_Check(found)) return nullptr;   // C answers for these; the last is pybind's
  if (Py_TYPE(found) == known().wrapper_descriptor || Py_TYPE(found) == known().method_descriptor) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i));
      if (PyObject* dict = bytecode::dict_of_type(base); dict && PyDict_GetItemWithError(dict, name)) return base == PyDescr_TYPE(found) ? nullptr : found;
    }
  }
  stop("special-method", std::string("the class ") + t->tp_name + " has something else than a function as " + PyUnicode_AsUTF8(name), "define it by def");
}

PyObject* Attributes::own_operator(PyTypeObject* t, PyObject* name) {
  PyObject* found = own_method(t, name);
  if (!found || !is_enum(t)) return found;
  PyObject* module = PyFunction_Check(found) ? PyFunction_GET_MODULE(found) : nullptr;
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "enum") == 0 ? nullptr : found;
}

bool Attributes::has_c_base(Value* v) {
  if (v->kind != Kind::object || plain_of(v)) return false;
  PyTypeObject* base = v->type;
  while ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(base->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) && base->tp_base) base = base->tp_base;
  return base != &PyBaseObject_Type && base != known().simple_namespace && !PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
}


Value* Attributes::instance_dict(Value* v) {
  values.force(v);
  Value *of_constant = nullptr, **place = nullptr;
  switch (v->kind) {
    case Kind::object: place = &body<Object>(v).dict; break;
    case Kind::tensor: place = &body<Tensor>(v).attributes; break;
    case Kind::list: case Kind::tuple: place = &body<Sequence>(v).attributes; break;
    case Kind::dict: case Kind::set: place = &body<Mapping>(v).attributes; break;
    case Kind::function: place = &values.function(v).attributes; break;
    case Kind::partial: place = &body<Partial>(v).attributes; break;
    case Kind::constant:   // a number or text of a class of the program's, a member of an enumeration: known by identity, and its attributes may change all the same
      if (!is_user_class(v->type) || !v->real || numbers.is_made_number(v->real)) return nullptr;   // stores end the graph, so that what is made here has none
      place = &of_constant;
      break;
    default: return nullptr;
  }
  if (*place) return *place;
  const bool of_thread = v->real && v->type == known().local_of_thread;   // one dictionary a thread
  if (v->kind != Kind::function && v->type->tp_dictoffset == 0 && !PyType_HasFeature(v->type, Py_TPFLAGS_MANAGED_DICT) && !of_thread) return nullptr;
  if (!v->real) {
    *place = values.make_dict();
    body<Mapping>(*place).owner = v;
    return *place;
  }
  PyObject* real = of_thread ? PyObject_GetAttr(v->real, names().__dict__) : PyObject_GenericGetDict(v->real, nullptr);
  if (!real) { PyErr_Clear(); return nullptr; }
  if (Value* seen = values.met(real)) {
    Py_DECREF(real);
    return *place = values.force(seen);
  }
  Value* d = values.new_value(Kind::dict, &PyDict_Type);
  d->real = values.keep(real);
  const SourceRef source = v->kind == Kind::constant && !v->source ? guards.sources().constant(v->real) : v->source;
  d->source = source ? guards.sources().of(source, SourceKind::instance_dict) : nullptr;
  Mapping& m = values.give<Mapping>(d);
  m.items = values.keep(PyDict_New());
  m.is_loaded = false;
  m.owner = v;
  values.meet(real, d);
  return *place = d;
}

/// Since 3.13 these words have the name of the class in full.
std::nullptr_t Attributes::raise_empty_slot(Value* v, PyObject* name) {
#if PY_VERSION_HEX >= 0x030D0000
  if (PyObject* type = PyType_GetFullyQualifiedName(v->type)) return exceptions.raise(PyExc_AttributeError, std::string("'") + PyUnicode_AsUTF8(values.keep(type)) + "' object has no attribute '" + PyUnicode_AsUTF8(name) + "'");
  PyErr_Clear();
#endif
  return raise_no_attribute(v, name);
}

std::nullptr_t Attributes::raise_no_attribute(Value* v, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (v->kind == Kind::klass) return exceptions.raise(PyExc_AttributeError, std::string("type object '") + reinterpret_cast<PyTypeObject*>(v->real)->tp_name + "' has no attribute '" + text + "'");
  if (v->kind == Kind::module) {
    const char* module = PyModule_GetName(v->real);
    PyErr_Clear();
    return exceptions.raise(PyExc_AttributeError, std::string("module '") + (module ? module : "?") + "' has no attribute '" + text + "'");
  }
  // Capture knows part of what objects of C have: what their type has, or their dictionary may have, is not missing.
  if (v->kind != Kind::object && v->kind != Kind::function && (!is_user_class(v->type) || v->kind == Kind::partial || v->kind == Kind::builtin) && (v->type->tp_dictoffset || _PyType_Lookup(v->type, name)))
    stop("c-attribute", std::string("the attribute ") + text + " of " + values.describe(v) + " is read");
  return exceptions.raise(PyExc_AttributeError, std::string("'") + v->type->tp_name + "' object has no attribute '" + text + "'");
}

// What the type has under the name, applied to an instance (or, with instance null, to the class itself).
Value* Attributes::apply_descriptor(PyObject* found, Value* instance, Value* owner, PyObject* name, Value** self) {
  PyTypeObject* t = Py_TYPE(found);
  const KnownTypes& k = known();
  for (PyTypeObject* base : {&PyProperty_Type, &PyStaticMethod_Type, &PyClassMethod_Type})
    if (t != base && t->tp_descr_get == base->tp_descr_get) {   // derived from it, with its __get__
      guards.add_type_version(t);
      t = base;
    }
  if (Value* member = !classes.has_made_classes() ? nullptr : classes.member_of(found)) {
    values.force(member);
    Value* klass = owner ? owner : instance ? values.wrap_constant_object(reinterpret_cast<PyObject*>(instance->type)) : values.none();
    if (member->kind == Kind::function) {   // a hook of classes is a class method, whatever it says; else an abstract method
      const bool hook = name == names().__init_subclass__ || PyUnicode_CompareWithASCIIString(name, "__class_getitem__") == 0;
      if (hook) return values.make_method(member, klass);
      return instance ? values.make_method(member, instance) : member;
    }
    if (PyObject* get = member->kind == Kind::object ? lookup_type(member->type, names().__get__) : nullptr; get && Py_TYPE(get) == &PyFunction_Type)
      return calls.call(values.wrap_constant_object(get), {member, instance ? instance : values.none(), klass});
    if (member->type && member->type->tp_descr_get && member->kind != Kind::object) stop("class-definition", "a class that the compiled function defines has a descriptor written in C");
    return member;
  }
  if (t == &PyFunction_Type) {
    Value* f = values.wrap_constant_object(found);
    if (!instance) return f;
    if (self) { *self = instance; return f; }
    return values.make_method(f, instance);
  }
  if (t == &PyStaticMethod_Type) {
    PyObject* inner = PyObject_GetAttr(found, names().func_);
    return inner ? values.wrap_constant_object(values.keep(inner)) : exceptions.raise_python();
  }
  if (t == &PyClassMethod_Type) {
    PyObject* inner = PyObject_GetAttr(found, names().func_);
    if (!inner) return exceptions.raise_python();
    values.keep(inner);
    Value* klass = owner ? owner : values.wrap_constant_object(reinterpret_cast<PyObject*>(instance->type));
    if (Py_TYPE(inner) != &PyFunction_Type) {
      if (Py_TYPE(inner)->tp_descr_get && Py_TYPE(inner) != &PyMethod_Type) return apply_descriptor(inner, klass, nullptr, name, self);
      return values.make_method(values.wrap_constant_object(inner), klass);
    }
    if (self) { *self = klass; return values.wrap_constant_object(inner); }
    return values.make_method(values.wrap_constant_object(inner), klass);
  }
  if (t == &PyProperty_Type) {
    if (!instance) return values.constant(found);
    PyObject* getter = PyObject_GetAttrString(found, "fget");
    if (!getter || getter == Py_None) { Py_XDECREF(getter); PyErr_Clear(); return exceptions.raise(PyExc_AttributeError, std::string("property '") + PyUnicode_AsUTF8(name) + "' of '" + qualified_name(instance->type) + "' object has no getter"); }
    return calls.call(values.wrap_constant_object(values.keep(getter)), {instance});
  }
  if (t == k.method_descriptor || t == k.wrapper_descriptor || t == &PyCFunction_Type) {
    return instance && t != &PyCFunction_Type ? values.bind_c_method(found, instance) : values.wrap_constant_object(found);
  }
  if (t == k.classmethod_descriptor) {
    Value* klass = owner ? owner : values.wrap_constant_object(reinterpret_cast<PyObject*>(instance->type));
    if (values.kind(klass) != Kind::klass) stop("class-method", "a class method written in C is read from a class that the compiled function defines");
    return constant_or_wrap(t->tp_descr_get(found, nullptr, klass->real));   // what was found, which super() need not find by the name
  }
  if (t == k.member_descriptor) {
    if (!instance) return values.constant(found);
    values.force(instance);
    if (instance->kind == Kind::object) {
      for (auto& s : body<Object>(instance).slots)
        if (PyUnicode_Compare(s.first, name) == 0) {
          if (!s.second) return raise_empty_slot(instance, name);
          return s.second;
        }
      if (instance->real) {
        PyObject* got = t->tp_descr_get(found, instance->real, reinterpret_cast<PyObject*>(instance->type));
        if (!got) { PyErr_Clear(); guards.add(instance->source, GuardKind::no_attr, name); return raise_empty_slot(instance, name); }
        Value* v = values.wrap(values.keep(got), guards.sources().attr(instance->source, name));
        if (v->kind == Kind::lazy && v->source) guards.add({.source = v->source, .kind = GuardKind::exists});   // hasattr sees no more than that
        body<Object>(instance).slots.emplace_back(name, v);
        return v;
      }
      if (name == names().__suppress_context__) {
        for (auto& s : body<Object>(instance).slots) if (s.first == names().__cause__) return values.boolean(true);
        return values.boolean(false);
      }
      if (PyType_IsSubtype(instance->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) && !(PyDescr_TYPE(found)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {   // C keeps it from the arguments
        const bool first = (name == names().value && PyType_IsSubtype(instance->type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration))) ||
                           (PyUnicode_CompareWithASCIIString(name, "code") == 0 && PyType_IsSubtype(instance->type, reinterpret_cast<PyTypeObject*>(PyExc_SystemExit)));
        Value* arguments = body<Object>(instance).arguments;
        if (!first || (name != names().value && arguments && values.items(arguments).size() > 1)) stop("exception-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of an exception is read");
        return arguments && !values.items(arguments).empty() ? values.items(arguments)[0] : values.none();
      }
      return raise_empty_slot(instance, name);
    }
    if (instance->kind == Kind::tuple) {   // a struct sequence: torch.return_types, os.stat_result
      PyObject* fields = PyObject_GetAttrString(reinterpret_cast<PyObject*>(instance->type), "__match_args__");
      if (fields && PyTuple_Check(fields)) {
        values.keep(fields);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i)
          if (PyUnicode_Compare(PyTuple_GET_ITEM(fields, i), name) == 0 && static_cast<size_t>(i) < values.items(instance).size()) return values.items(instance)[static_cast<size_t>(i)];
      } else PyErr_Clear();
    }
    if (instance->kind == Kind::builtin && instance->real) return constant_or_wrap(PyObject_GetAttr(instance->real, name));   // functions of C do not change
    stop("member-descriptor", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(instance) + " is read");
  }
  if (t == k.getset_descriptor) {
    if (!instance) return values.constant(found);
    return getset_attribute(found, instance, name);
  }
  if (std::string_view(t->tp_name) == "_collections._tuplegetter" || std::string_view(t->tp_name) == "collections._tuplegetter") {
    if (!instance) return values.constant(found);
    PyObject* reduced = PyObject_CallMethod(found, "__reduce__", nullptr);
    if (!reduced) return exceptions.raise_python();
    const long index = PyLong_AsLong(PyTuple_GET_ITEM(PyTuple_GET_ITEM(reduced, 1), 0));
    Py_DECREF(reduced);
    if (values.kind(instance) != Kind::tuple) stop("tuple-getter", "a field of a named tuple is read from another kind of object");
    if (static_cast<size_t>(index) >= values.items(instance).size()) return exceptions.raise(PyExc_IndexError, "tuple index out of range");   // made by tuple.__new__
    return values.items(instance)[static_cast<size_t>(index)];
  }
  if (is_enum(t)) return values.constant(found);
  PyObject* get = _PyType_Lookup(t, names().__get__);
  if (get && Py_TYPE(get) == &PyFunction_Type) {   // a descriptor class written in Python
    Value* klass = owner ? owner : values.wrap_constant_object(reinterpret_cast<PyObject*>(instance->type));
    return calls.call(values.wrap_constant_object(get), {values.wrap_constant_object(found), instance ? instance : values.none(), klass});
  }
  if (t->tp_descr_get && t != &PyType_Type && !(t == k.lru_cache && !instance)) {
    if (t == k.lru_cache) { Value* f = values.wrap_constant_object(found); return values.make_method(f, instance); }
    stop("c-descriptor", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " is a descriptor of the type " + t->tp_name + ", whose __get__ is written in C");
  }
  return values.wrap_constant_object(found);
}

// C getters of the types that the interpreter knows: values that depend on nothing it does not model.
Value* Attributes::getset_attribute(PyObject* found, Value* v, PyObject* name) {
  values.force(v);
  if (name == names().__dict__) {
    if (Value* d = instance_dict(v)) return d;
    if (v->kind == Kind::constant) stop("constant-attribute-store", "the dictionary of " + values.describe(v) + " is read");
    return raise_no_attribute(v, name);
  }
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(v->type));
  if (name == names().__doc__ || name == names().__module__) return constant_or_wrap(v->real ? PyObject_GetAttr(v->real, name) : Py_NewRef(Py_None));
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    if (name == names().args && body<Object>(v).arguments) return body<Object>(v).arguments;
    if (!v->real && PyUnicode_CompareWithASCIIString(name, "__traceback__") == 0) return tracebacks.traceback_of(v);
    for (auto& s : body<Object>(v).slots)
      if (PyUnicode_Compare(s.first, name) == 0) return s.second;
    if (!v->real && name == names().__context__) return interpreter.none_handled_outside("the context of an exception is read");
    if (!v->real && name == names().__cause__) return values.none();
    if (!v->real && name == names().__suppress_context__) return values.boolean(false);
    stop("exception-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of an exception is read");
  }
  if (v->kind == Kind::generator) {
    const Generator& g = body<Generator>(v);
    const std::string_view what = std::string_view(PyUnicode_AsUTF8(name));
    const std::string_view part = what.size() > 3 ? what.substr(3) : "";
    if (part == "running") return values.boolean(g.is_running);
    if (part == "suspended") return values.boolean(g.is_started && !g.is_done && !g.is_running);
    if (part == "frame" && g.is_done) return values.none();
    if (part == "frame") return values.new_value(Kind::opaque, &PyFrame_Type);
    if (part == "code") return values.constant(reinterpret_cast<PyObject*>(g.frame->code->object()));
    if (name == names().__name__) return values.constant(values.function(g.frame->function).name);
    if (name == names().__qualname__) return values.constant(values.function(g.frame->function).qualname);
  }
  if (v->kind == Kind::view && PyUnicode_CompareWithASCIIString(name, "mapping") == 0) {
    return classes.make_proxy(body<View>(v).dict);
  }
  if (v->kind == Kind::constant) return constant_or_wrap(PyObject_GetAttr(v->real, name));
  if (v->real && !v->is_changed && v->source && (v->kind == Kind::builtin || v->kind == Kind::klass)) return constant_or_wrap(PyObject_GetAttr(v->real, name));
  stop("c-attribute", std::string("the C attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is read", "");
  (void)found;
}

// A new reference to something C gave: a constant, or an object reached by identity.
Value* Attributes::constant_or_wrap(PyObject* o) {
  if (!o) return exceptions.raise_python();
  return values.wrap_constant_object(values.keep(o));
}

Value* Attributes::getattr(Value* v, const char* name) { return getattr(v, values.keep(PyUnicode_InternFromString(name))); }
Value* Attributes::getattr(Value* v, PyObject* name) { return load_method(v, name, nullptr); }

Value* Attributes::load_method(Value* v, PyObject* name, Value** self) {
  const Tail tail = endings.take_tail();
  values.force(v);
  switch (v->kind) {
    case Kind::tensor: return leaves.tensor_attribute(v, name);
    case Kind::module: return module_attribute(v, name);
    case Kind::klass: return class_attribute(v, name, self);
    case Kind::function: return function_attribute(v, name);
    case Kind::super: endings.hand_on(tail); return super_attribute(v, name, self);
    case Kind::method: {
      Method& m = body<Method>(v);
      if (name == names().func_ && v->type == &PyMethod_Type) return m.function;
      if (name == names().__self__) return m.self;
      if (name == names().__call__) return v;
      if (v->type == &PyMethod_Type && _PyType_Lookup(&PyMethod_Type, name) && name != names().__doc__) {   // the method's own, not its function's
        if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(&PyMethod_Type));
        stop("method-attribute", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of a bound method is read");
      }
      return getattr(m.function, name);
    }
    case Kind::partial: {
      Partial& p = body<Partial>(v);
      if (name == names().func) return p.function;
      if (name == names().args) return values.make_tuple(p.args);
      if (name == names().keywords) {   // it is the partial's own dict
        if (p.shown) return p.shown;
        if (v->real && v->source) p.shown = values.force(values.wrap(values.keep(PyObject_GetAttr(v->real, name)), guards.sources().attr(v->source, name)));
        else {
          p.shown = values.make_dict();
          for (auto& [k, x] : p.keywords) mappings.dict_set(p.shown, k, x);
        }
        if (p.shown->kind == Kind::dict) body<Mapping>(p.shown).partial = v;
        return p.shown;
      }
      break;
    }
    case Kind::cell:
      if (name == names().cell_contents) {
        if (Value* c = values.cell_contents(v)) return c;
        return exceptions.raise(PyExc_ValueError, "Cell is empty");
      }
      break;
    case Kind::object:
      if (name != names().__next__ && name != names().__iter__) builtins.refuse_inside(v);
      if (tracebacks.is_traceback(v)) return tracebacks.traceback_attribute(v, name);
      if (name == names().__class__ && Library::is_array_value(v)) return values.wrap_constant_object(reinterpret_cast<PyObject*>(library.type_of_array(v)));
      break;
    case Kind::slice: {
      Slice& s = body<Slice>(v);
      if (name == names().start) return s.start;
      if (name == names().stop) return s.stop;
      if (name == names().step) return s.step;
      break;
    }
    case Kind::list:
      if (v->type == known().deque && PyUnicode_CompareWithASCIIString(name, "maxlen") == 0) return body<Sequence>(v).limit < 0 ? values.none() : values.integer(body<Sequence>(v).limit);
      break;
    case Kind::dict:
      if (body<Mapping>(v).default_factory && name == names().default_factory) return body<Mapping>(v).default_factory;
      break;
    case Kind::constant:
      if (is_enum(v->type)) {
        if (name == names().value || name == names().name) return constant_or_wrap(PyObject_GetAttr(v->real, name == names().value ? names()._value_ : names()._name_));
      } else if (!(v->type->tp_flags & Py_TPFLAGS_HEAPTYPE) || v->type == known().pattern || v->type == known().match) {
        PyObject* found = _PyType_Lookup(v->type, name);
        if (found && (Py_TYPE(found) == known().method_descriptor || Py_TYPE(found) == known().wrapper_descriptor)) return values.bind_c_method(found, v);
        PyObject* got = PyObject_GetAttr(v->real, name);
        if (!got) return exceptions.raise_python();
        return values.wrap_constant_object(values.keep(got));
      }
      break;
    case Kind::builtin:
      if (v->type == known().op_overload || v->type == known().op_overload_packet) return constant_or_wrap(PyObject_GetAttr(v->real, name));
      break;
    case Kind::opaque:
      if (v->type == known().context_var && v->real)
        if (PyObject* own = _PyType_Lookup(v->type, name)) return Py_TYPE(own) == known().method_descriptor ? values.bind_c_method(own, v) : constant_or_wrap(PyObject_GetAttr(v->real, name));
      stop("opaque-object", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of " + values.describe(v) + " is read; capture does not know this type");
    default: break;
  }
  endings.hand_on(tail);
  return instance_attribute(v, name, self);
}

Value* Attributes::instance_attribute(Value* v, PyObject* name, Value** self) {
  const Tail tail = endings.take_tail();
  PyTypeObject* t = v->type;
  const bool generic = has_generic_getattr(t);
  if (!generic) {
    PyObject* custom = lookup_type(t, names().__getattribute__);
    if (custom && Py_TYPE(custom) == &PyFunction_Type) {
      PyObject* fallback = own_method(t, names().__getattr__);
      if (fallback) endings.end_with(tail, "after_attribute", {values.wrap_constant_object(fallback), v, values.constant(name)});
      else endings.hand_on(tail);
      Value* r = calls.call(values.wrap_constant_object(custom), {v, values.constant(name)});
      if (r || !exceptions.raised_is(PyExc_AttributeError)) return r;
      if (!fallback) return nullptr;
      exceptions.take_raised();
      endings.hand_on(tail);
      return calls.call(values.wrap_constant_object(fallback), {v, values.constant(name)});
    }
    if ((t->tp_flags & Py_TPFLAGS_HEAPTYPE || v->real) && t != known().local_of_thread) {
      if (v->kind == Kind::object) stop("attribute-lookup", std::string("the type ") + t->tp_name + " defines its own attribute lookup");
    }
  }
  // __getattr__ is asked when the ordinary way fails, a property's own AttributeError included.
  PyObject* fallback = own_method(t, names().__getattr__);
  if (!fallback) endings.hand_on(tail);
  else if (PyObject* descriptor = tail.is ? _PyType_Lookup(t, name) : nullptr; descriptor && (Py_TYPE(descriptor) == &PyProperty_Type || is_user_class(Py_TYPE(descriptor))))
    endings.end_with(tail, "after_attribute", {values.wrap_constant_object(fallback), v, values.constant(name)});
  Value* found = generic_attribute(v, name, self);
  endings.take_tail();
  if (found || !exceptions.raised_is(PyExc_AttributeError)) return found;
  if (!fallback) return nullptr;
  if (fallback == known().module_getattr && v->kind == Kind::object) {
    if (Value* member = module_member(v, name)) { exceptions.take_raised(); return member; }
    exceptions.take_raised();
    PyObject* type_name = values.keep(PyObject_GetAttr(reinterpret_cast<PyObject*>(t), names().__name__));
    return exceptions.raise(PyExc_AttributeError, std::string("'") + PyUnicode_AsUTF8(type_name) + "' object has no attribute '" + PyUnicode_AsUTF8(name) + "'");
  }
  exceptions.take_raised();
  endings.hand_on(tail);
  return calls.call(values.wrap_constant_object(fallback), {v, values.constant(name)});
}

/// nn.Module.__getattr__ by hand: a parameter, a buffer or a submodule; null without raising when there is none.
Value* Attributes::module_member(Value* v, PyObject* name) {
  Value* dict = instance_dict(v);
  if (!dict) return nullptr;
  for (PyObject* part : {names()._parameters, names()._buffers, names()._modules}) {
    Value* d = mappings.dict_get(dict, part);
    if (!d || values.kind(d) != Kind::dict) continue;
    if (Value* found = mappings.dict_get(d, name)) return found;
  }
  return nullptr;
}

Value* Attributes::generic_attribute(Value* v, PyObject* name, Value** self) {
  PyTypeObject* t = v->type;
  if (name == names().__dict__ && v->kind == Kind::object && PyType_IsSubtype(t, known().simple_namespace)) return instance_dict(v);
  const Classes::FoundOnClass found = classes.find_on_class(t, name);
  // One with __set__ alone is asked for nothing: what it left in the instance's dictionary comes first.
  Value* const member = found.object && classes.has_made_classes() ? classes.member_of(found.object) : nullptr;   // of a class that the captured code makes: a stand-in is found
  const PyTypeObject* found_type = member ? values.type_of(member) : found.object ? Py_TYPE(found.object) : found.stored ? values.type_of(found.stored) : nullptr;
  if (classes.is_data_descriptor_value(found) && found_type->tp_descr_get) return classes.apply_found(found, v, nullptr, name, self);
  // A partial that has no dictionary yet stays without: partial() takes such ones apart, and keeps the others as they are.
  PyObject** const of_partial = v->kind == Kind::partial && v->real && v->source && !body<Partial>(v).attributes && name != names().__dict__ ? _PyObject_GetDictPtr(v->real) : nullptr;
  if (of_partial && !*of_partial) {
    guards.add(v->source, GuardKind::no_instance_attr, name);
  } else if (Value* dict = instance_dict(v)) {
    if (Value* x = mappings.dict_get(dict, name)) return x;
  }
  const bool has_c_dict = v->kind == Kind::builtin && v->real && v->source && v->type->tp_dictoffset > 0;
  if (has_c_dict) {   // a function with a cache: C keeps what the program put on it
    PyObject** place = _PyObject_GetDictPtr(v->real);
    if (PyObject* own = place && *place ? PyDict_GetItemWithError(*place, name) : nullptr) return values.wrap(own, guards.sources().attr(v->source, name));
    PyErr_Clear();
  }
  if (found.object || found.stored) return classes.apply_found(found, v, nullptr, name, self);
  if (has_c_dict && name != names().__dict__) {
    guards.add(v->source, GuardKind::no_attr, name);
    return exceptions.raise(PyExc_AttributeError, std::string("'") + v->type->tp_name + "' object has no attribute '" + PyUnicode_AsUTF8(name) + "'");
  }
  if (v->kind == Kind::partial && name != names().__dict__) return exceptions.raise(PyExc_AttributeError, std::string("'") + v->type->tp_name + "' object has no attribute '" + PyUnicode_AsUTF8(name) + "'");
  if (name == names().__dict__) if (Value* d = instance_dict(v)) return d;
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(t));
  return raise_no_attribute(v, name);
}

namespace {
// torch.ops, torch.ops.aten and torch._VF find operators by name; what they find does not change.
bool is_torch_namespace(PyTypeObject* t) {
  PyObject* module = bytecode::in_type_dict(t, "__module__");
  return module && PyUnicode_Check(module) && (PyUnicode_CompareWithASCIIString(module, "torch._ops") == 0 || PyUnicode_CompareWithASCIIString(module, "torch._VF") == 0);
}
}  // namespace

Value* Attributes::module_attribute(Value* v, PyObject* name) {
  if (v->type != &PyModule_Type && v->type && PyType_IsSubtype(v->type, &PyModule_Type))   // a class of modules may have properties, which come first
    if (PyObject* own = lookup_type(v->type, name); own && (Py_TYPE(own) == &PyProperty_Type || (is_user_class(Py_TYPE(own)) && is_data_descriptor(own) && _PyType_Lookup(Py_TYPE(own), names().__get__))))
      return apply_descriptor(own, v, nullptr, name, nullptr);
  PyObject* fallback = v->type != &PyModule_Type ? lookup_type(v->type, names().__getattr__) : nullptr;
  const bool is_namespace = fallback && is_torch_namespace(v->type);
  if (is_namespace) {   // the first look puts an operator into the dictionary: guards are made for what is there afterwards
    if (PyObject* found = PyObject_GetAttr(v->real, name)) values.keep(found);
    else PyErr_Clear();
  }
  Value* dict = module_dict(v);
  if (Value* x = mappings.dict_get(dict, name)) return x;
  if (name == names().__dict__) return dict;
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(v->type));
  Value* module_fallback = mappings.dict_get(dict, names().__getattr__);
  if (is_namespace) {
    if (PyObject* found = PyObject_GetAttr(v->real, name)) return values.wrap_constant_object(values.keep(found));
    PyErr_Clear();   // a library that is loaded later may bring it, and no dictionary shows that
    stop("lazy-module", values.describe(v) + " has no operator " + PyUnicode_AsUTF8(name) + " yet");
  }
  if (fallback || module_fallback)
    stop("lazy-module", std::string("the module ") + values.describe(v) + " creates its attribute " + PyUnicode_AsUTF8(name) + " when it is first read");
  PyObject* on_type = _PyType_Lookup(v->type, name);
  if (on_type) return constant_or_wrap(PyObject_GetAttr(v->real, name));
  return raise_no_attribute(v, name);
}

Value* Attributes::module_dict(Value* v) {
  PyObject* real = PyModule_GetDict(v->real);
  if (Value* seen = values.met(real)) return values.force(seen);
  const bool is_reached = v->source && v->source->kind != SourceKind::constant;
  return namespaces.namespace_dict(real, is_reached ? guards.sources().of(v->source, SourceKind::instance_dict) : nullptr, v);
}

Value* Attributes::class_attribute(Value* v, PyObject* name, Value** self) {
  auto* t = reinterpret_cast<PyTypeObject*>(v->real);
  PyTypeObject* meta = Py_TYPE(v->real);
  if (PyObject* own = meta != &PyType_Type ? own_method(meta, names().__getattribute__) : nullptr) {
    if (own_method(meta, names().__getattr__)) stop("attribute-lookup", std::string("the metaclass ") + meta->tp_name + " looks up attributes in two ways of its own");
    return calls.call(values.wrap_constant_object(own), {v, values.constant(name)});
  }
  PyObject* on_meta = lookup_type(meta, name);
  if (on_meta && is_data_descriptor(on_meta) && Py_TYPE(on_meta)->tp_descr_get) {
    if (name == names().__dict__) { guards.add_type_version(t); return classes.class_proxy(t); }
    if (Py_TYPE(on_meta) == known().getset_descriptor || Py_TYPE(on_meta) == known().member_descriptor) {
      guards.add_type_version(t);
      return constant_or_wrap(PyObject_GetAttr(v->real, name));
    }
    return apply_descriptor(on_meta, v, nullptr, name, self);
  }
  if (const Classes::FoundOnClass both = classes.find_on_class(t, name); both.stored) {
    return classes.apply_found(both, nullptr, v, name, nullptr);
  } else if (PyObject* found = both.object) {
    if (is_enum(t) && Py_TYPE(found)->tp_descr_get && !PyFunction_Check(found)) {
      PyObject* got = PyObject_GetAttr(v->real, name);   // a member behind a property of the same name
      if (got) return values.wrap_constant_object(values.keep(got));
      PyErr_Clear();
    }
    return apply_descriptor(found, nullptr, v, name, nullptr);
  }
  if (on_meta) return apply_descriptor(on_meta, v, nullptr, name, self);
  if (meta != &PyType_Type)
    if (PyObject* fallback = own_method(meta, names().__getattr__)) return calls.call(values.wrap_constant_object(fallback), {v, values.constant(name)});
  return raise_no_attribute(v, name);
}

Value* Attributes::function_attribute(Value* v, PyObject* name) {
  Function& f = values.function(v);
  const Names& n = names();
  if (v->real && v->source && (name == n.__name__ || name == n.__qualname__ || name == n.__module__ || name == n.__doc__)) {   // all of them can be assigned
    PyObject* now = PyObject_GetAttr(v->real, name);
    return now ? values.wrap(values.keep(now), guards.sources().attr(v->source, name)) : exceptions.raise_python();
  }
  if (name == n.__name__) return values.constant(f.name);
  if (name == n.__qualname__) return values.constant(f.qualname);
  if (name == n.__code__) return values.constant(reinterpret_cast<PyObject*>(f.code));
  if (name == n.__defaults__) return f.defaults ? f.defaults : values.none();
  if (name == n.__kwdefaults__) return f.keyword_defaults ? f.keyword_defaults : values.none();
  if (name == n.__closure__) return f.closure.empty() ? values.none() : values.make_tuple(f.closure);
  if (name == n.__globals__) return namespaces.globals_of(f);
  if (name == n.__module__ || name == n.__doc__ || name == n.__annotations__) {
    if (v->real) return constant_or_wrap(PyObject_GetAttr(v->real, name));
    if (Value* d = instance_dict(v)) if (Value* x = mappings.dict_get(d, name)) return x;
    if (name == n.__module__) { Value* m = mappings.dict_get(namespaces.globals_of(f), n.__name__); return m ? m : values.none(); }
    if (name == n.__doc__) {
      PyObject* consts = f.code->co_consts;
      PyObject* doc = PyTuple_GET_SIZE(consts) && PyUnicode_Check(PyTuple_GET_ITEM(consts, 0)) ? PyTuple_GET_ITEM(consts, 0) : Py_None;
      return values.constant(doc);
    }
    if (!f.annotations || values.kind(f.annotations) == Kind::tuple) {   // (name, value, …), as MAKE_FUNCTION takes it: a dict from the first look on
      Value* d = values.make_dict();
      if (f.annotations)
        for (size_t i = 0; i + 1 < values.items(f.annotations).size(); i += 2) mappings.dict_set(d, mappings.key_of(values.items(f.annotations)[i]), values.items(f.annotations)[i + 1]);
      f.annotations = d;
    }
    return f.annotations;
  }
  if (Value* d = instance_dict(v)) {
    if (Value* x = mappings.dict_get(d, name)) return x;
    if (name == n.__dict__) return d;
  }
  if (name == n.__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(&PyFunction_Type));
  if (PyObject* found = _PyType_Lookup(&PyFunction_Type, name)) {
    if (Py_TYPE(found) == known().wrapper_descriptor || Py_TYPE(found) == known().method_descriptor) return values.bind_c_method(found, v);
    if (v->real) return constant_or_wrap(PyObject_GetAttr(v->real, name));
  }
  return raise_no_attribute(v, name);
}

Value* Attributes::super_attribute(Value* v, PyObject* name, Value** self) {
  Super& s = body<Super>(v);
  auto* after = reinterpret_cast<PyTypeObject*>(values.force(s.type)->real);
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(&PySuper_Type));
  PyObject* mro = s.start->tp_mro;
  guards.add_type_version(s.start);
  Py_ssize_t i = 0;
  const Py_ssize_t n = PyTuple_GET_SIZE(mro);
  while (i < n && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(after)) ++i;
  for (++i; i < n; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    const Classes::FoundOnClass found = classes.find_on_base(base, name);
    if (!found.object && !found.stored) continue;
    const bool of_class = values.kind(s.self) == Kind::klass && reinterpret_cast<PyTypeObject*>(s.self->real) == s.start;
    return of_class ? classes.apply_found(found, nullptr, s.self, name, nullptr) : classes.apply_found(found, s.self, nullptr, name, self);
  }
  if (name == names().__thisclass__) return s.type;
  if (name == names().__self__) return s.self;
  if (name == names().__self_class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(s.start));
  return exceptions.raise(PyExc_AttributeError, std::string("'super' object has no attribute '") + PyUnicode_AsUTF8(name) + "'");
}

Value* Attributes::special(Value* v, PyObject* name) {
  values.force(v);
  if (!v->type) return nullptr;
  PyTypeObject* t = v->kind == Kind::klass ? Py_TYPE(v->real) : v->type;
  PyObject* found = lookup_type(t, name);
  if (!found) return nullptr;
  if (found == Py_None) stop("special-method", std::string("the class ") + t->tp_name + " has None as " + PyUnicode_AsUTF8(name));
  return apply_descriptor(found, v, nullptr, name, nullptr);
}

}  // namespace cutaway::capture
