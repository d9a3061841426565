// Calling a type of Python's or torch's own: int(x), list(x), zip(a, b), super(), torch.Size(…).
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compiler/bytecode/stack_use.h"
#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

namespace {
struct Polyfills {
  std::unordered_map<PyObject*, PyObject*> functions;   // by address: the keys live as long as the module
  std::unordered_map<std::string, PyObject*> class_methods;
  PyObject *identity = nullptr, *give_up = nullptr, *is_held = nullptr, *names = nullptr, *endings = nullptr;
};
const Polyfills& polyfills() {
  static const Polyfills all = [] {
    Polyfills p;
    PyObject* module = PyImport_ImportModule("cutaway._polyfills");
    PyObject* table = module ? PyObject_GetAttrString(module, "REPLACEMENTS") : nullptr;
    if (!table) throw std::runtime_error("cutaway._polyfills cannot be imported");
    p.identity = PyObject_GetAttrString(module, "identity");
    p.give_up = PyObject_GetAttrString(module, "give_up");
    p.is_held = PyObject_GetAttrString(module, "is_held");
    p.names = PyModule_GetDict(module);
    PyObject* endings = PyImport_ImportModule("cutaway._polyfills.endings");
    if (!endings) throw std::runtime_error("cutaway._polyfills.endings cannot be imported");
    p.endings = PyModule_GetDict(endings);
    PyDict_SetItemString(p.endings, "END", bytecode::end_marker());
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(table, &position, &key, &value)) {
      if (PyTuple_Check(key)) p.class_methods[std::string(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(key, 0))->tp_name) + "." + PyUnicode_AsUTF8(PyTuple_GET_ITEM(key, 1))] = value;
      else p.functions[key] = value;
    }
    return p;
  }();
  return all;
}
}  // namespace

bool is_polyfill_module(PyObject* name) {
  if (!name || !PyUnicode_Check(name)) return false;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) { PyErr_Clear(); return false; }
  return std::string_view(text) == "cutaway._polyfills" || std::string_view(text).starts_with("cutaway._polyfills.");
}
PyObject* ending_globals() { return polyfills().endings; }
PyObject* ending_named(const char* name) {
  PyObject* found = PyDict_GetItemString(ending_globals(), name);
  if (!found) throw std::runtime_error(std::string("cutaway._polyfills.endings has no ") + name);
  return found;
}
PyObject* polyfill_named(const char* name) {
  PyObject* found = PyDict_GetItemString(polyfills().names, name);
  if (!found) throw std::runtime_error(std::string("cutaway._polyfills has no ") + name);
  return found;
}

Value* Builtins::polyfill(PyObject* o) {
  const auto& table = polyfills().functions;
  auto it = table.find(o);
  return it == table.end() ? nullptr : values.wrap_constant_object(it->second);
}
Value* Builtins::own_function(const char* name) { return values.wrap_constant_object(polyfill_named(name)); }
Value* Builtins::polyfill_class_method(PyTypeObject* t, const std::string& name) {
  const auto& table = polyfills().class_methods;
  auto it = table.find(std::string(t->tp_name) + "." + name);
  return it == table.end() ? nullptr : values.wrap_constant_object(it->second);
}
bool Builtins::is_identity_function(PyObject* f) { return f == polyfills().identity; }
bool Builtins::is_held_function(PyObject* f) { return f == polyfills().is_held; }
bool Builtins::is_give_up_function(PyObject* f) { return f == polyfills().give_up; }
void Builtins::refuse_stand_in(Value* v) {
  if ((v->kind == Kind::generator && values.stands_for_c(body<Generator>(v).frame->function)) || (v->kind == Kind::object && is_polyfill_module(bytecode::in_type_dict(v->type, "__module__"))))
{
    end_before_stand_in(v);
    throw frames::Skip{{.id = "stand-in", .what = "type(), repr() or an attribute is asked of an object that capture has replaced by one written in Python", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::end_before_made}};
  }
}
bool Builtins::is_stand_in_iterator(const Value* v) const { return stand_ins_.contains(v) && _PyType_Lookup(v->type, names().__next__); }
void Builtins::refuse_inside(Value* v) {
  if (is_stand_in_iterator(v) && !values.stands_for_c(frame_stack.innermost()->function)) refuse_stand_in(v);
}
void Builtins::note_stand_in(Value* v) {
  stand_ins_.emplace(v, frame_stack.step_now());
  has_made_weak_reference_ |= std::string_view(v->type->tp_name) == "Reference";
}
void Builtins::end_before_stand_in(Value* v) {
  if (v->kind == Kind::generator) interpreter.end_earlier(body<Generator>(v).made_at);
  else if (is_stand_in_iterator(v)) interpreter.end_earlier(stand_ins_.at(v));   // a label of the profiler is around whole steps of optimisers: those go on as before
}

Value* Builtins::make_super_of_frame() {
  // super() without arguments: the cell __class__ and the first argument of the function that calls it.
  Frame* f = frame_stack.innermost();
  PyCodeObject* co = f->code->object();
  if (!co->co_argcount) return exceptions.raise(PyExc_RuntimeError, "super(): no arguments");
  Value* self = f->locals[0];
  if (self && f->code->slot_kind(0) == bytecode::SlotKind::local_cell && self->kind == Kind::cell) self = values.cell_contents(self);
  if (!self) return exceptions.raise(PyExc_RuntimeError, "super(): arg[0] deleted");
  for (int i = f->code->slot_count() - co->co_nfreevars; i < f->code->slot_count(); ++i) {
    if (f->code->slot_name(i) != "__class__") continue;
    Value* klass = values.cell_contents(f->locals[static_cast<size_t>(i)]);
    if (!klass) return exceptions.raise(PyExc_RuntimeError, "super(): empty __class__ cell");
    if (values.kind(klass) != Kind::klass) return exceptions.raise(PyExc_RuntimeError, std::string("super(): __class__ is not a type (") + klass->type->tp_name + ")");
    return checked_super(klass, self);
  }
  return exceptions.raise(PyExc_RuntimeError, "super(): __class__ cell not found");
}

/// The class of the object is where the search begins. In a method of a metaclass the object is a class: an instance of the metaclass, or a class below.
Value* Builtins::checked_super(Value* klass, Value* self) {
  values.force(self);
  if (values.kind(klass) != Kind::klass) return exceptions.raise(PyExc_TypeError, std::string("super() argument 1 must be a type, not ") + klass->type->tp_name);
  if (values.is_constant(self, Py_None)) stop("unbound-super", "super() of no object is made");
  auto* type = reinterpret_cast<PyTypeObject*>(klass->real);
  const bool is_class = self->kind == Kind::klass;
  if (is_class && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(self->real), type)) return values.make_super(klass, self, reinterpret_cast<PyTypeObject*>(self->real));
  PyTypeObject* own = is_class ? Py_TYPE(self->real) : self->type;
  if (PyType_IsSubtype(own, type)) return values.make_super(klass, self, own);
  if (self->kind == Kind::opaque || attributes.lookup_type(own, names().__class__) != _PyType_Lookup(&PyBaseObject_Type, names().__class__)) stop("unbound-super", "super() of an object is made that says itself what its class is");
#if PY_VERSION_HEX >= 0x030D0000
  const std::string what = is_class ? std::string("type ") + reinterpret_cast<PyTypeObject*>(self->real)->tp_name : std::string("instance of ") + self->type->tp_name;
  return exceptions.raise(PyExc_TypeError, "super(type, obj): obj (" + what + ") is not an instance or subtype of type (" + type->tp_name + ").");
#else
  return exceptions.raise(PyExc_TypeError, "super(type, obj): obj must be an instance or subtype of type");
#endif
}

// torch.Size holds plain integers, whatever it is made of: tensors and objects are asked for theirs, and torch itself says what is wrong with the rest.
Value* Builtins::make_size(std::vector<Value*> all) {
  bool is_plain = true;
  for (size_t i = 0; i < all.size(); ++i) {
    Value* v = values.force(all[i]);
    if (v->kind == Kind::tensor || v->kind == Kind::object) {
      Py_ssize_t n = 0;
      if (subscripts.index_number(v, &n)) {
        all[i] = values.integer(n);
        continue;
      }
      if (!exceptions.raised_is(PyExc_TypeError)) return nullptr;
      exceptions.take_raised();
    }
    PyObject* c = values.as_constant(v);
    if (!c) return exceptions.raise(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item " + std::to_string(i) + " is '" + v->type->tp_name + "')");
    int overflow = 0;
    is_plain = is_plain && PyLong_CheckExact(c) && (PyLong_AsLongLongAndOverflow(c, &overflow), !overflow);
  }
  Value* made = values.make_tuple(std::move(all), is_plain ? known().size : &PyTuple_Type);
  return is_plain ? made : values.constant_steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(known().size), values.as_constant(made)));
}

Value* Builtins::call_known_type(PyTypeObject* t, const Args& args, bool* is_known) {
  const Tail tail = endings.take_tail();
  *is_known = true;
  if (is_numpy_number(t)) {
    Value* r = nullptr;
    return library.call_numpy(values.constant_kind(reinterpret_cast<PyObject*>(t)), args, &r) ? r : nullptr;
  }
  const KnownTypes& k = known();
  auto all_of = [&](std::vector<Value*>* into) { return !args.count || iteration.unpack(args[0], into); };
  if (t == &PyType_Type) {
    if (args.count == 1 && !args.keyword_count) {
      Value* v = values.force(args[0]);
      refuse_stand_in(v);
      if (Library::is_array_value(v)) return values.wrap_constant_object(reinterpret_cast<PyObject*>(library.type_of_array(v)));
      return values.wrap_constant_object(v->kind == Kind::klass || v->kind == Kind::module || v->kind == Kind::builtin ? reinterpret_cast<PyObject*>(Py_TYPE(v->real)) : reinterpret_cast<PyObject*>(v->type));
    }
    if (args.count == 1) return exceptions.raise(PyExc_TypeError, "type() takes no keyword arguments");
    if (args.count != 3) return exceptions.raise(PyExc_TypeError, "type() takes 1 or 3 arguments");
    return classes.make_class(t, args);
  }
  if (!calls.takes(reinterpret_cast<PyObject*>(t), nullptr, args)) return nullptr;
  if (t == &PyBool_Type) {
    if (!args.count) return values.boolean(false);
    if (values.kind(args[0]) == Kind::tensor) return leaves.call_leaf_constant(args[0], "__bool__");
    if (number_of(values.force(args[0]))) return leaves.compute_number("sym.bool", {args[0]});
    endings.hand_on(tail);
    const int r = subscripts.truth(args[0]);
    return r < 0 ? nullptr : values.boolean(r);
  }
  if (t == &PyLong_Type || t == &PyFloat_Type || t == &PyComplex_Type) {
    if (args.count == 1 && !args.keyword_count) {
      Value* v = values.force(args[0]);
      if (v->kind == Kind::tensor) return leaves.call_leaf_constant(v, t == &PyLong_Type ? "__int__" : t == &PyFloat_Type ? "__float__" : "__complex__");
      if (v->kind == Kind::object) {
        if (t == &PyComplex_Type) {
          if (attributes.own_method(v->type, values.keep(PyUnicode_InternFromString("__complex__")))) stop("special-method", "complex() is called on " + values.describe(v) + ", which has its own idea of it");
        }
        const char* name = t == &PyLong_Type ? "__int__" : "__float__";
        if (Value* r = operators.dunder(v, name, nullptr); r || exceptions.raised()) {
          if (!r) return nullptr;
          values.force(r);
          if (r->kind == Kind::constant && Py_TYPE(r->real) == (t == &PyLong_Type ? &PyLong_Type : &PyFloat_Type)) return t == &PyComplex_Type ? call_pure(reinterpret_cast<PyObject*>(t), {r}) : r;
          if (r->kind != Kind::constant || t == &PyComplex_Type || (t == &PyLong_Type ? PyLong_Check(r->real) : PyFloat_Check(r->real))) stop("special-method", std::string(name) + " gives " + values.describe(r));   // Python warns, or refuses it
          return exceptions.raise(PyExc_TypeError, t == &PyLong_Type ? std::string("__int__ returned non-int (type ") + r->type->tp_name + ")" : std::string(v->type->tp_name) + ".__float__ returned non-float (type " + r->type->tp_name + ")");
        }
        Value* plain = plain_of(v);
        if (!plain || PyUnicode_Check(plain->real)) {   // numbers of C have __int__ and __float__ already
          if (attributes.own_method(v->type, names().__index__)) {
            PyObject* n = subscripts.index_object(v);
            return !n ? nullptr : t == &PyLong_Type ? values.constant(n) : call_pure(reinterpret_cast<PyObject*>(t), {values.constant(n)});
          }
          if (t == &PyLong_Type && attributes.own_method(v->type, values.keep(PyUnicode_InternFromString("__trunc__")))) stop("special-method", "int() asks __trunc__, of which Python warns");
        }
        if (plain) return call_pure(reinterpret_cast<PyObject*>(t), {plain});
      }
    }
    return call_pure(reinterpret_cast<PyObject*>(t), args);
  }
  if (t == &PyUnicode_Type) {
    if (args.count == 1 && !args.keyword_count) return texts.str(args[0]);
    return call_pure(reinterpret_cast<PyObject*>(t), args);
  }
  if (t == &PyBytes_Type || t == &PyRange_Type || t == k.device || t == k.dtype) {
    if (t == &PyRange_Type) {
      PyObject* parts[3];
      for (size_t i = 0; i < args.count && i < 3; ++i)
        if (!(parts[i] = subscripts.index_object(args[i]))) return nullptr;
      return values.constant_steal(PyObject_Vectorcall(reinterpret_cast<PyObject*>(t), parts, args.count, nullptr));
    }
    return call_pure(reinterpret_cast<PyObject*>(t), args);
  }
  if (t == &PyTuple_Type || t == &PyList_Type) {
    std::vector<Value*> all;
    if (t == &PyTuple_Type && args.count == 1 && values.kind(args[0]) == Kind::tuple && args[0]->type == &PyTuple_Type) return args[0];
    endings.hand_on(tail);
    if (args.count && !iteration.unpack(args[0], &all, t)) return nullptr;
    return t == &PyTuple_Type ? values.make_tuple(std::move(all)) : values.make_list(std::move(all));
  }
  if (t == k.size) {
    std::vector<Value*> all;
    if (!all_of(&all)) return nullptr;
    return make_size(std::move(all));
  }
  if (t == &PySet_Type || t == &PyFrozenSet_Type) {
    if (t == &PyFrozenSet_Type && args.count && values.kind(args[0]) != Kind::lazy && args[0]->type == t) return args[0];
    Value* s = values.make_set();
    bool is_method = true;
    if (args.count && !containers.call_set_method("update", s, {args[0]}, &is_method)) return nullptr;
    s->type = t;
    return s;
  }
  if (t == &PyDict_Type) {
    Value* d = values.make_dict();
    if (args.count && !iteration.dict_update(d, args[0])) return nullptr;
    for (size_t i = 0; i < args.keyword_count; ++i) mappings.dict_set(d, args.keywords[i].first, args.keywords[i].second);
    return d;
  }
  if (t == k.deque) {
    Value *from = args.count ? args[0] : nullptr, *limit = args.count > 1 ? args[1] : nullptr;
    for (size_t i = 0; i < args.keyword_count; ++i) (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "maxlen") == 0 ? limit : from) = args.keywords[i].second;
    Py_ssize_t n = -1;
    if (!containers.deque_limit(limit, &n)) return nullptr;
    Value* made = containers.make_deque(t, {}, n);
    return !from || iteration.extend(made, from) ? made : nullptr;
  }
  if (t == &PySlice_Type) {
    if (args.count == 1) return values.make_slice(values.none(), args[0], values.none());
    return values.make_slice(args[0], args[1], args.count > 2 ? args[2] : values.none());
  }
  if (t == k.zip) {
    Value* v = values.make_iterator(Iterator::What::zip, nullptr);
    for (size_t i = 0; i < args.keyword_count; ++i) {
      const int strict = subscripts.truth(args.keywords[i].second);
      if (strict < 0) return nullptr;
      body<Iterator>(v).is_strict = strict;
    }
    for (size_t i = 0; i < args.count; ++i) { Value* it = iteration.iter(args[i]); if (!it) return nullptr; body<Iterator>(v).parts.push_back(it); }
    return v;
  }
  if (t == k.enumerate) {
    if (!args.count) stop("unknown-c-function", "enumerate() is called with its iterable as a keyword argument");
    Value* first = args.count > 1 ? args[1] : args.keyword_count ? args.keywords[0].second : nullptr;
    PyObject* start = nullptr;
    if (first) {   // before the iterable is looked at
      start = values.as_constant(first);
      if ((!start || !PyLong_CheckExact(start)) && !(start = subscripts.index_object(first))) return nullptr;
    }
    Value* it = iteration.iter(args[0]);
    if (!it) return nullptr;
    Value* v = values.make_iterator(Iterator::What::enumerate, it);
    body<Iterator>(v).counter = start ? start : values.keep(PyLong_FromLong(0));
    return v;
  }
  if (t == k.map || t == k.filter) {
    Value* v = values.make_iterator(t == k.map ? Iterator::What::map : Iterator::What::filter, args[0]);
    for (size_t i = 1; i < args.count; ++i) { Value* it = iteration.iter(args[i]); if (!it) return nullptr; body<Iterator>(v).parts.push_back(it); }
    return v;
  }
  if (t == k.reversed) {
    Value* v = values.force(args[0]);
    if (Value* own = operators.dunder(v, "__reversed__", nullptr); own || exceptions.raised()) return own;
    Value* sequence = v;
    if (v->kind == Kind::opaque || attributes.has_c_base(v)) stop("opaque-iterator", values.describe(v) + " is reversed, which capture does not know");
    const bool by_items = v->kind == Kind::object || (v->kind == Kind::tuple && is_user_class(v->type) && (attributes.own_method(v->type, names().__len__) || attributes.own_method(v->type, names().__getitem__)));
    if (plain_of(v)) stop("opaque-iterator", values.describe(v) + " is reversed");
    const bool is_sequence = v->kind == Kind::constant ? PySequence_Check(v->real) : v->type->tp_as_sequence && v->type->tp_as_sequence->sq_item;
    if (!is_sequence && v->kind != Kind::dict && v->kind != Kind::view) return exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not reversible");
    if (by_items) {   // one after the other, when they are asked for
      if (!attributes.lookup_type(v->type, names().__getitem__)) stop("opaque-iterator", values.describe(v) + " is reversed, which capture does not know");
      Value* n = subscripts.length(v);
      if (!n) return nullptr;
      Value* it = values.make_iterator(Iterator::What::reversed_callable, v);
      it->type = k.reversed;
      body<Iterator>(it).position = static_cast<size_t>(PyLong_AsSsize_t(n->real));
      return it;
    }
    if ((v->kind == Kind::dict && v->type != known().mappingproxy) || v->kind == Kind::view) {   // C's own, whatever a class below says; it sees what the dict becomes
      const View::What shows = v->kind == Kind::view ? body<View>(v).what : View::What::keys;
      Value* dict = v->kind == Kind::view ? values.force(body<View>(v).dict) : v;
      Value* it = iteration.iterate_mapping(dict, shows);
      std::ranges::reverse(body<Iterator>(it).parts);
      body<Iterator>(it).is_backward = true;
      if (!PyType_IsSubtype(dict->type, known().ordered_dict)) it->type = shows == View::What::keys ? &PyDictRevIterKey_Type : shows == View::What::values ? &PyDictRevIterValue_Type : &PyDictRevIterItem_Type;
      return it;
    }
    if (v->kind == Kind::dict || v->kind == Kind::constant) {
      std::vector<Value*> all;
      Value* it = iteration.plain_iter(v);
      if (!it) { if (!exceptions.raised()) stop("opaque-iterator", values.describe(v) + " is reversed, which capture does not know"); return nullptr; }
      if (!iteration.unpack(it, &all)) return nullptr;
      sequence = values.make_list(std::move(all));
    } else if (v->kind != Kind::list && v->kind != Kind::tuple) {
      stop("opaque-iterator", values.describe(v) + " is reversed, which capture does not know");
    }
    Value* it = values.make_iterator(Iterator::What::reversed, sequence);
    body<Iterator>(it).position = values.items(sequence).size();
    body<Iterator>(it).changes = body<Sequence>(sequence).changes;
    static PyTypeObject* const of_deque = [] {
      PyObject* empty = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(known().deque));
      PyObject* turned = empty ? PyObject_CallMethod(empty, "__reversed__", nullptr) : nullptr;
      PyErr_Clear();
      return turned ? Py_TYPE(turned) : known().reversed;
    }();
    if (containers.is_deque(v)) it->type = of_deque;
    else if (v->type == &PyRange_Type) it->type = &PyRangeIter_Type;
    else if (v->kind == Kind::constant) it->type = known().reversed;
    return it;
  }
  if (t == &PySuper_Type) {
    if (!args.count) return make_super_of_frame();
    if (args.count == 1) stop("unbound-super", "super() with one argument is called");
    return checked_super(args[0], args[1]);
  }
  if (t == k.mappingproxy) {
    Value* dict = args.count == 1 ? values.force(args[0]) : nullptr;
    if (!dict || dict->kind != Kind::dict) stop("mapping-proxy", "a proxy of something that is not a dict is made");
    return classes.make_proxy(dict);
  }
  if (t == k.partial) {
    if (!args.count) return exceptions.raise(PyExc_TypeError, "type 'partial' takes at least one argument");
    if (const Kind k = values.kind(args[0]); (k == Kind::constant || k == Kind::list || k == Kind::tuple || k == Kind::dict || k == Kind::set || k == Kind::tensor) && !attributes.lookup_type(args[0]->type, names().__call__))
      return exceptions.raise(PyExc_TypeError, "the first argument must be callable");
    return values.make_partial(args[0], args.rest(1));
  }
  if (t == &PyMethod_Type) {
    const Kind of = values.kind(args[0]);
    const bool can_call = of == Kind::function || of == Kind::method || of == Kind::builtin || of == Kind::klass || of == Kind::partial || of == Kind::opaque || attributes.lookup_type(args[0]->type, names().__call__);
    if (!can_call || values.is_constant(args[1], Py_None)) {   // in the words of this Python
      PyObject* parts[] = {can_call ? reinterpret_cast<PyObject*>(&PyLong_Type) : Py_None, Py_None};
      Py_XDECREF(PyObject_Vectorcall(reinterpret_cast<PyObject*>(t), parts, 2, nullptr));
      return exceptions.raise_python();
    }
    return values.make_method(args[0], args[1]);
  }
  if (Value* replaced = polyfill(reinterpret_cast<PyObject*>(t))) { calls.note_replaced(reinterpret_cast<PyObject*>(t)); return calls.call(replaced, args); }
  const std::string_view name = t->tp_name;
  if (name == "torch.finfo" || name == "torch.iinfo") return call_pure(reinterpret_cast<PyObject*>(t), args);
  if ((t == &PyStaticMethod_Type || t == &PyClassMethod_Type) && args.count == 1 && !args.keyword_count && values.kind(args[0]) == Kind::function)
    return values.constant_steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(t), classes.stand_in_for_function(args[0])));
  if (t == &PyProperty_Type && !args.keyword_count && args.count <= 3) {
    std::vector<PyObject*> parts;
    for (size_t i = 0; i < args.count && values.kind(args[i]) == Kind::function; ++i) parts.push_back(classes.stand_in_for_function(args[i]));
    if (parts.size() == args.count) return values.constant_steal(PyObject_Vectorcall(reinterpret_cast<PyObject*>(t), parts.data(), parts.size(), nullptr));
  }
  if (t == &PyStaticMethod_Type || t == &PyClassMethod_Type || t == &PyProperty_Type) stop("descriptor-made", std::string("an instance of ") + t->tp_name + " is created inside the compiled function");
  *is_known = false;
  return nullptr;
}

}  // namespace cutaway::capture
