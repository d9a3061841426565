// Methods and slots of C types, called through their descriptors: str.upper, dict.__getitem__ by super(), object.__setattr__.
#include <cstdint>

#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Builtins::call_method_descriptor(PyObject* d, const Args& args) {
  PyTypeObject* owner = PyDescr_TYPE(d);
  const std::string name = PyUnicode_AsUTF8(PyDescr_NAME(d));
  const bool is_slot = Py_TYPE(d) == known().wrapper_descriptor;
  if (!args.count) {
    PyObject* refused = PyObject_CallNoArgs(d);   // without an object each refuses, in its own words
    return refused ? values.constant_steal(refused) : exceptions.raise_python();
  }
  Value* self = values.force(args[0]);
  if (Library::is_array_value(self) && PyType_IsSubtype(library.type_of_array(self), owner) && owner != &PyBaseObject_Type) {
    Value* own = attributes.getattr(self, name.c_str());
    return own ? calls.call(own, args.rest(1)) : nullptr;
  }
  if (Py_TYPE(d) != known().classmethod_descriptor && !PyType_IsSubtype(self->type, owner)) {
    if (self->kind == Kind::iterator || self->kind == Kind::generator || self->kind == Kind::opaque) stop("unknown-c-function", std::string(owner->tp_name) + "." + name + "() is called on " + values.describe(self));
    const std::string type = self->type->tp_name;
    return is_slot ? exceptions.raise(PyExc_TypeError, "descriptor '" + name + "' requires a '" + owner->tp_name + "' object but received a '" + type + "'")
                   : exceptions.raise(PyExc_TypeError, "descriptor '" + name + "' for '" + owner->tp_name + "' objects doesn't apply to a '" + type + "' object");
  }
  if (plain_of(self) && owner != &PyBaseObject_Type && owner != &PyType_Type && PyType_IsSubtype(Py_TYPE(plain_of(self)->real), owner)) {   // C sees the number alone
    std::vector<Value*> all{plain_of(self)};
    for (size_t i = 1; i < args.count; ++i) all.push_back(numbers.plain_or_self(args[i]));
    return call_method_descriptor(d, Args(all.data(), all.size(), args.keywords, args.keyword_count));
  }
  const Args rest = args.rest(1);
  const auto is_plain = [&](const Args& given) {
    for (size_t i = 0; i < given.count; ++i) if (!texts.to_plain(given[i])) return false;
    for (size_t i = 0; i < given.keyword_count; ++i) if (!texts.to_plain(given.keywords[i].second)) return false;
    return true;
  };
  if (self->kind == Kind::constant && !is_user_class(self->type)) {   // where the arguments are plain, too, the method itself answers
    if (is_slot && name != "__iter__" && owner != &PyBaseObject_Type && owner != &PyType_Type && is_plain(rest)) return call_pure(d, args);
  }
  if (self->kind != Kind::constant && self->kind != Kind::tensor && Py_TYPE(d) != known().classmethod_descriptor && PyType_IsSubtype(self->type, owner) && !calls.takes(d, owner, rest)) return nullptr;
  if (self->type == known().context_var && owner == known().context_var) return library.call_context_variable(self, name, rest);
  if (self->type == known().device && (name == "__enter__" || name == "__exit__")) stop("function-mode", "a device is used as a context manager", "pass device= to each function");
  if (self->kind == Kind::tensor && owner != &PyBaseObject_Type && owner != &PyType_Type) return leaves.call_tensor_method(self, PyDescr_NAME(d), args);
  if (owner != &PyBaseObject_Type && PyType_IsSubtype(known().tensor, owner)) stop("slot-wrapper", "Tensor." + name + " is called on " + values.describe(self));
  if (Py_TYPE(d) == known().wrapper_descriptor || owner == &PyBaseObject_Type || name.rfind("__", 0) == 0) {   // dict.__getitem__ is no slot wrapper
    if (Value* r = call_slot(d, owner, name, self, rest)) return r;
    if (exceptions.raised()) return nullptr;
  }
  switch (self->kind) {
    case Kind::list: case Kind::tuple: case Kind::dict: case Kind::set: case Kind::generator: case Kind::iterator: case Kind::view: {
      bool is_known = false;
      Value* r = containers.call_container_method(owner, name.c_str(), self, rest, &is_known);
      if (is_known) return r;
      break;
    }
    case Kind::constant:
      if (PyFrozenSet_Check(self->real)) {
        bool is_known = true;
        Value* r = containers.call_set_method(name, self, rest, &is_known);
        if (is_known) return r;
      }
      if (owner == &PyProperty_Type && (name == "getter" || name == "setter" || name == "deleter") && rest.count == 1 && values.kind(rest[0]) == Kind::function)
        return values.constant_steal(PyObject_CallFunctionObjArgs(d, self->real, classes.stand_in_for_function(rest[0]), nullptr));
      if (self->type == &PyUnicode_Type && name == "format" && !is_plain(rest)) return calls.call(own_function("format_text"), args);
      return call_pure(d, args);
    case Kind::slice:
      if (values.as_constant(self)) return call_pure(d, args);
      break;
    case Kind::klass:
      if (owner == &PyType_Type) {
        if (name == "mro") return attributes.constant_or_wrap(PyObject_CallMethod(self->real, "mro", nullptr));
        if (name == "__subclasses__") stop("subclasses", "__subclasses__() is called");
      }
      break;
    case Kind::object:
      if (PyType_IsSubtype(self->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
        if (name == "with_traceback" && args.count == 2) return tracebacks.set_traceback(self, args[1]) ? self : nullptr;
        if (name == "add_note" && !self->real && args.count == 2) {
          Value* d = attributes.instance_dict(self);
          Value* notes = d ? mappings.dict_get(d, names().__notes__) : nullptr;
          if (!notes) mappings.dict_set(d, names().__notes__, notes = values.make_list({}));
          if (const Kind k = values.kind(args[1]); (k == Kind::constant && !PyUnicode_Check(args[1]->real)) || k == Kind::list || k == Kind::tuple || k == Kind::dict) return exceptions.raise(PyExc_TypeError, std::string("note must be a str, not '") + args[1]->type->tp_name + "'");
          if (values.kind(notes) != Kind::list) return exceptions.raise(PyExc_TypeError, "Cannot add note: __notes__ is not a list");
          values.items(notes).push_back(args[1]);
          return values.none();
        }
      }
      if (tracebacks.is_traceback(self) && name == "clear") return tracebacks.clear_frame(self);
      break;
    default: break;
  }
  stop("unknown-c-function", std::string(owner->tp_name) + "." + name + "() is called on " + values.describe(self) + "; it is written in C, and capture does not know it");
}

// A slot of a C type called by its dunder: what a subclass reaches by super().
Value* Builtins::call_slot(PyObject* d, PyTypeObject* owner, const std::string& name, Value* self, const Args& args) {
  auto name_argument = [&]() -> PyObject* {
    PyObject* n = args.count ? values.as_constant(args[0]) : nullptr;
    if (!n) stop("unknown-c-function", name + "() is called with a name that is not text");
    if (!PyUnicode_Check(n)) { exceptions.raise(PyExc_TypeError, std::string("attribute name must be string, not '") + Py_TYPE(n)->tp_name + "'"); return nullptr; }
    Py_INCREF(n);
    PyUnicode_InternInPlace(&n);
    return values.keep(n);
  };
  if (name == "__hash__" && self->kind == Kind::constant) return call_pure_slot(d, self, args);
  if (name == "__init__") return calls.init_builtin(self, d, args) ? values.none() : nullptr;
  if (self->kind == Kind::klass && (name == "__setattr__" || name == "__delattr__")) {
    PyObject* n = name_argument();
    return n && classes.set_class_attribute(self, n, name == "__setattr__" ? args[1] : nullptr) ? values.none() : nullptr;
  }
  if (name == "__setattr__") {   // C's own, whatever the class says under that name
    PyObject* n = name_argument();
    const bool by_kind = self->kind == Kind::tensor || self->kind == Kind::module || self->kind == Kind::function || self->kind == Kind::cell || self->kind == Kind::builtin || self->kind == Kind::opaque;
    return n && (by_kind ? attributes.setattr(self, n, args[1]) : attributes.generic_setattr(self, n, args[1])) ? values.none() : nullptr;
  }
  if (name == "__delattr__") { PyObject* n = name_argument(); return n && attributes.generic_delattr(self, n) ? values.none() : nullptr; }
  if (name == "__getattribute__") {
    PyObject* n = name_argument();
    if (!n) return nullptr;
    if (self->kind == Kind::object || self->kind == Kind::dict || self->kind == Kind::list || self->kind == Kind::tuple) return attributes.generic_attribute(self, n, nullptr);
    return attributes.getattr(self, n);
  }
  // The container's own, whatever a class below it says: that is how it is reached by super().
  if (attributes.has_c_base(self) && owner != &PyBaseObject_Type) return nullptr;
  if (name == "__getitem__") return subscripts.plain_subscript(self, args[0]);
  if (name == "__setitem__") return subscripts.plain_store_subscript(self, args[0], args[1]) ? values.none() : nullptr;
  if (name == "__reversed__" && (self->kind == Kind::list || self->kind == Kind::dict || self->kind == Kind::view) && !is_user_class(self->type)) return calls.call(values.wrap_constant_object(reinterpret_cast<PyObject*>(known().reversed)), {self});
  if (name == "__hash__" && self->kind == Kind::tuple && self->type == &PyTuple_Type)
    if (PyObject* c = values.as_constant(self)) { const Py_hash_t h = PyObject_Hash(c); return h == -1 ? exceptions.raise_python() : values.integer(h); }
  if (name == "__delitem__") return subscripts.plain_delete_subscript(self, args[0]) ? values.none() : nullptr;
  if (name == "__contains__") { const int r = subscripts.plain_contains(self, args[0]); return r < 0 ? nullptr : values.boolean(r); }
  if (name == "__len__") return subscripts.plain_length(self);
  if (name == "__iter__") {
    Value* it = iteration.plain_iter(self);
    if (!it && !exceptions.raised()) stop("unknown-c-function", std::string(owner->tp_name) + ".__iter__() is called on " + values.describe(self));
    return it;
  }
  if (name == "__next__") {
    bool done = false;
    Value* v = iteration.next(self, &done);
    const bool has_value = done && (self->kind == Kind::generator || self->kind == Kind::object) && interpreter.last_return() && !values.is_constant(interpreter.last_return(), Py_None);
    return done ? exceptions.raise(exceptions.make_exception(PyExc_StopIteration, has_value ? std::vector<Value*>{interpreter.last_return()} : std::vector<Value*>{})) : v;
  }
  if (name == "__call__") {
    if (owner == &PyType_Type && self->kind == Kind::klass) return calls.instantiate(reinterpret_cast<PyTypeObject*>(self->real), self, args);
    if (self->kind == Kind::object || self->kind == Kind::opaque) stop("unknown-callable", values.describe(self) + " is called, whose type is written in C");
    return calls.call(self, args);
  }
  if (name == "__get__" && self->kind == Kind::function) {
    if (values.is_constant(args[0], Py_None)) return args.count < 2 || values.is_constant(args[1], Py_None) ? exceptions.raise(PyExc_TypeError, "__get__(None, None) is invalid") : self;
    return values.make_method(self, args[0]);
  }
  if (name == "__init_subclass__") return values.none();
  if (owner == &PyBaseObject_Type) {
    if (name == "__eq__") return values.same_identity(self, args[0]) ? values.boolean(true) : values.constant(Py_NotImplemented);
    if (name == "__ne__") { Value* r = operators.compare(Py_EQ, self, args[0]); const int t = r ? subscripts.truth(r) : -1; return t < 0 ? nullptr : values.boolean(!t); }
    if (name == "__hash__") stop("hash", "object.__hash__ is called");
    if (name == "__reduce_ex__" || name == "__reduce__" || name == "__sizeof__" || name == "__dir__") stop("object-protocol", "object." + name + " is called");
    if (name == "__repr__" || name == "__str__" || name == "__format__") stop("text-of-a-value", values.describe(self) + " is converted to text");
    stop("object-protocol", "object." + name + " is called");
  }
  static const std::unordered_map<std::string_view, int> kBinary = {{"__add__", 0}, {"__and__", 1}, {"__floordiv__", 2}, {"__mul__", 5}, {"__mod__", 6}, {"__or__", 7}, {"__pow__", 8}, {"__sub__", 10},
      {"__truediv__", 11}, {"__xor__", 12}, {"__iadd__", 13}, {"__iand__", 14}, {"__imul__", 18}, {"__ior__", 20}, {"__isub__", 23}, {"__ixor__", 25}};
  static const std::unordered_map<std::string_view, int> kReflected = {{"__rmul__", 5}, {"__rand__", 1}, {"__ror__", 7}, {"__rsub__", 10}, {"__rxor__", 12}};
  if (self->kind == Kind::constant) return call_pure_slot(d, self, args);
  if (self->kind == Kind::list || self->kind == Kind::tuple || self->kind == Kind::dict || self->kind == Kind::set) {
    if (self->type->tp_flags & Py_TPFLAGS_HEAPTYPE) stop("container-subclass", std::string(owner->tp_name) + "." + name + " is called on an instance of a subclass");
    // Sets and dicts leave to the other side what they do not know; lists and tuples raise. Only what both sides model is asked.
    Value* other = args.count ? values.force(args[0]) : nullptr;
    const auto is_set = [](Value* v) { return v->kind == Kind::set || (v->kind == Kind::constant && PyFrozenSet_Check(v->real)); };
    const auto is_tuple = [](Value* v) { return v->kind == Kind::tuple || (v->kind == Kind::constant && PyTuple_Check(v->real)); };
    const bool same = other && (self->kind == Kind::set ? is_set(other) : self->kind == Kind::tuple ? is_tuple(other) : other->kind == self->kind && containers.is_deque(other) == containers.is_deque(self));
    const auto is_number = [](Value* v) { return v->type == &PyLong_Type || v->type == &PyBool_Type; };
    const bool unknown = other && (other->kind == Kind::opaque || (is_user_class(other->type) && !containers.is_deque(other)));
    if (auto it = kReflected.find(name); it != kReflected.end()) {
      if (unknown) stop("container-subclass", std::string(owner->tp_name) + "." + name + " is called with an object of another class");
      if (!same && (self->kind == Kind::set || self->kind == Kind::dict)) return values.constant(Py_NotImplemented);
      if (it->second == 5 && !is_number(other)) stop("unknown-c-function", std::string(owner->tp_name) + "." + name + " is called with " + values.describe(other));
      return operators.binary(it->second, args[0], self);
    }
    if (auto it = kBinary.find(name); it != kBinary.end()) {
      if (!same && (self->kind == Kind::set || (self->kind == Kind::dict && name != "__ior__"))) {
        if (unknown) stop("container-subclass", std::string(owner->tp_name) + "." + name + " is called with an object of another class");
        return values.constant(Py_NotImplemented);
      }
      if ((it->second == 5 || it->second == 18) && !is_number(other)) stop("unknown-c-function", std::string(owner->tp_name) + "." + name + " is called with " + values.describe(other));
      return operators.binary(it->second, self, args[0]);
    }
    static const std::unordered_map<std::string_view, int> kCompare = {{"__lt__", Py_LT}, {"__le__", Py_LE}, {"__eq__", Py_EQ}, {"__ne__", Py_NE}, {"__gt__", Py_GT}, {"__ge__", Py_GE}};
    if (auto it = kCompare.find(name); it != kCompare.end()) {
      if (unknown) stop("container-subclass", std::string(owner->tp_name) + "." + name + " is called with an object of another class");
      if (!same || (self->kind == Kind::dict && it->second != Py_EQ && it->second != Py_NE)) return values.constant(Py_NotImplemented);
      return operators.compare(it->second, self, args[0]);
    }
    if (name == "__repr__") return texts.repr(self);
  }
  return nullptr;
}

Value* Builtins::call_pure_slot(PyObject* d, Value* self, const Args& args) {
  std::vector<Value*> all{self};
  all.insert(all.end(), args.positional, args.positional + args.count);
  return call_pure(d, Args(all.data(), all.size(), args.keywords, args.keyword_count));
}

}  // namespace cutaway::capture
