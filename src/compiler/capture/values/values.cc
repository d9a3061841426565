#include "compiler/capture/values/values.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/frames/size_log.h"
#include "compiler/frames/stack_names.h"

namespace cutaway::capture {

Values::Values(const Owners& owners) : Owners(owners) {
  null_ = new_value(Kind::null, nullptr);
  none_ = constant(Py_None);
  true_ = constant(Py_True);
  false_ = constant(Py_False);
}
Values::~Values() {
  for (PyObject* o : keep_) Py_DECREF(o);
}

void Values::let_go(PyObject* o) {
  const auto it = std::find(keep_.begin(), keep_.end(), o);
  if (it != keep_.end()) *it = Py_NewRef(Py_None);   // the others stay where they are
  Py_DECREF(o);
}

Value* Values::new_value(Kind kind, PyTypeObject* type) {
  Value* v = &values_.emplace_back();
  v->kind = kind;
  v->type = type;
  v->serial = static_cast<uint32_t>(values_.size());
  return v;
}

Value* Values::constant(PyObject* o) { return constant_steal(Py_NewRef(o)); }
Value* Values::constant_steal(PyObject* o) {
  if (!o) return exceptions.raise_python();
  Value* v = new_value(Kind::constant, Py_TYPE(o));
  v->real = keep(o);
  if (PyTuple_CheckExact(o)) {   // tuples are one kind, wherever they come from
    v->kind = Kind::tuple;
    Sequence& s = give<Sequence>(v);
    s.as_constant = o;
    s.is_loaded = false;
  }
  return v;
}
Value* Values::integer(long long i) { return constant_steal(PyLong_FromLongLong(i)); }
Value* Values::text(std::string_view s) { return constant_steal(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()))); }

Value* Values::wrap(PyObject* o, SourceRef source) {
  const Kind k = kind_of_type(Py_TYPE(o), o);
  const bool identity = has_identity(k);
  if (identity) {
    if (auto it = by_object_.find(o); it != by_object_.end()) {
      Value* v = it->second;
      SourceRef known_by = v->source;
      if (!known_by) library.array_outside(v, &known_by);
      if (known_by != source && source && source->kind != SourceKind::constant) {
        if (k == Kind::function || known_by == nullptr || known_by->kind == SourceKind::constant) {
          guards.add(source, GuardKind::id, o);
        } else {
          guards.add(source, GuardKind::same_object);
          guards.last().other = known_by;
        }
      }
      return v;
    }
  }
  Value* v = new_value(Kind::lazy, Py_TYPE(o));
  v->real = keep(Py_NewRef(o));
  v->source = source;
  if (identity) by_object_[o] = v;
  return v;
}

Value* Values::wrap_constant_object(PyObject* o) {
  const Kind k = kind_of_type(Py_TYPE(o), o);
  if (k == Kind::constant) return constant(o);
  return wrap(o, guards.sources().constant(o));
}

Value* Values::constant_kind(PyObject* f) { Value* v = constant(f); v->kind = kind_of_type(Py_TYPE(f), f); return v; }

namespace {
// Tuples and frozen sets of numbers, text and the like, to any depth.
bool is_deeply_constant(PyObject* o, int depth = 0) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyTuple_Type || t == known().size) {
    if (depth > 8) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (!is_deeply_constant(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
    return true;
  }
  if (t == &PyFrozenSet_Type) return true;
  return kind_of_type(t, o) == Kind::constant;
}
}  // namespace

void Values::force_items(Value* tuple) {
  tuple->kind = Kind::tuple;
  tuple->type = &PyTuple_Type;
  guards.add(tuple->source, GuardKind::type, reinterpret_cast<PyObject*>(&PyTuple_Type));
  guards.add(tuple->source, GuardKind::length, nullptr, PyTuple_GET_SIZE(tuple->real));
  give<Sequence>(tuple).is_loaded = false;
}

Value* Values::force_slow(Value* v) {
  PyObject* o = v->real;
  PyTypeObject* t = Py_TYPE(o);
  v->type = t;
  const Kind k = kind_of_type(t, o);
  auto* type_object = reinterpret_cast<PyObject*>(t);
  v->kind = k;
  if (t == known().mappingproxy && v->source && v->source->kind != SourceKind::constant) {
    PyObject* dict = guards::behind_view(o);
    // That of a class is known with the class.
    if (dict && (PyDict_CheckExact(dict) || PyODict_CheckExact(dict)) && !PyDict_GetItemWithError(dict, names().__module__) && !PyErr_Occurred()) {
      guards.add(v->source, GuardKind::type, type_object);
      Value* inside = force(wrap(dict, guards.sources().of(v->source, SourceKind::behind_view)));
      mappings.dict_load(inside);
      v->kind = Kind::dict;
      v->body = inside->body;
      classes.note_proxy(v, inside);
      return v;
    }
    PyErr_Clear();
  }
  if (k == Kind::opaque && is_uninitialized(t)) {   // the call that initializes it runs as it is; from the next one on it is a tensor
    v->kind = Kind::lazy;
    throw frames::Skip{{.id = "uninitialized-parameter", .what = "a parameter of a lazy module is met that has no shape yet: this call runs eagerly", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
  }
  switch (k) {
    case Kind::view: {
      guards.add(v->source, GuardKind::type, type_object);
      const View::What what = t == known().dict_keys ? View::What::keys : t == known().dict_values ? View::What::values : View::What::items;
      Value* inside = wrap(guards::behind_view(o), v->source ? guards.sources().of(v->source, SourceKind::behind_view) : nullptr);
      force(inside);
      View& w = give<View>(v);
      w.what = what;
      w.dict = inside;
      break;
    }
    case Kind::constant:
      if (o == Py_None || o == Py_True || o == Py_False || o == Py_Ellipsis || o == Py_NotImplemented || t == known().dtype || t == &PyCode_Type ||
          (t->tp_flags & Py_TPFLAGS_HEAPTYPE) || t == known().pattern || t == known().match)
        guards.add(v->source, GuardKind::id, o);
      else if (v->source && v->source->kind != SourceKind::constant) {
        guards.add(v->source, GuardKind::const_eq, o);
        if (frames::SizeLog* log = frames::size_log(); log && t == &PyLong_Type)
          if (const auto said = log->integer_of(*v->source, o)) v->real = keep(PyLong_FromLongLong(*said));
        if (frames::SizeLog* log = frames::size_log(); log && t == &PyFloat_Type)
          if (const auto said = log->float_of(*v->source, PyFloat_AS_DOUBLE(o))) v->real = keep(PyFloat_FromDouble(*said));
      }
      break;
    case Kind::tensor: {
      Tensor& body = give<Tensor>(v);
      tensors.add_input(v, body);
      torch_calls.note_class(v);
      break;
    }
    case Kind::tuple:
      if (t == &PyTuple_Type && PyTuple_GET_SIZE(o) <= 32 && is_deeply_constant(o) && v->source && v->source->kind != SourceKind::constant &&
          !(frames::size_log() && frames::size_log()->has_items_of(*v->source))) {
        guards.add(v->source, GuardKind::const_eq, o);   // one comparison for all of it
        Sequence& s = give<Sequence>(v);
        s.is_loaded = false;
        s.as_constant = o;
        break;
      }
      [[fallthrough]];
    case Kind::list: {
      guards.add(v->source, GuardKind::type, type_object);
      const Py_ssize_t n = PyList_Check(o) || PyTuple_Check(o) ? PySequence_Fast_GET_SIZE(o) : PyObject_Size(o);
      Sequence& s = give<Sequence>(v);
      s.is_loaded = false;
      s.is_counted = t != &PyList_Type || !v->source;   // a list that is only appended to may have any length
      if (s.is_counted && (k != Kind::tuple || !(v->source && v->source->kind == SourceKind::constant))) guards.add(v->source, GuardKind::length, nullptr, n);
      if (t == known().deque) {
        PyObject* name = keep(PyUnicode_InternFromString("maxlen"));
        PyObject* limit = as_constant(wrap(keep(PyObject_GetAttr(o, name)), guards.sources().attr(v->source, name)));
        if (limit != Py_None) body<Sequence>(v).limit = PyLong_AsSsize_t(limit);
      }
      break;
    }
    case Kind::dict: {
      guards.add(v->source, GuardKind::type, type_object);
      Mapping& m = give<Mapping>(v);
      m.items = keep(PyDict_New());
      m.is_loaded = false;
      if (PyType_IsSubtype(t, known().defaultdict)) {
        PyObject* factory = PyObject_GetAttr(o, names().default_factory);
        if (factory) m.default_factory = wrap(keep(factory), guards.sources().attr(v->source, names().default_factory));
        else PyErr_Clear();
      }
      break;
    }
    case Kind::set: {
      // The order of a set depends on its history: an equal one may be iterated differently, so only membership is looked at lazily.
      guards.add(v->source, GuardKind::type, type_object);
      Mapping& m = give<Mapping>(v);
      m.items = keep(PyDict_New());
      m.order = keep(PySet_New(nullptr));
      m.is_loaded = false;
      break;
    }
    case Kind::slice: {
      guards.add(v->source, GuardKind::type, type_object);
      auto* s = reinterpret_cast<PySliceObject*>(o);
      Slice& body = give<Slice>(v);
      body.start = wrap(s->start, v->source ? guards.sources().attr(v->source, names().start) : nullptr);
      body.stop = wrap(s->stop, v->source ? guards.sources().attr(v->source, names().stop) : nullptr);
      body.step = wrap(s->step, v->source ? guards.sources().attr(v->source, names().step) : nullptr);
      break;
    }
    case Kind::function:
      guards.add(v->source, GuardKind::code, reinterpret_cast<PyObject*>(PyFunction_GET_CODE(o)));
      give<Function>(v).is_loaded = false;
      body<Function>(v).code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(o));
      break;
    case Kind::method: {
      guards.add(v->source, GuardKind::type, type_object);
      Method& m = give<Method>(v);
      m.function = wrap(PyMethod_GET_FUNCTION(o), v->source ? guards.sources().of(v->source, SourceKind::method_function) : nullptr);
      m.self = wrap(PyMethod_GET_SELF(o), v->source ? guards.sources().of(v->source, SourceKind::method_self) : nullptr);
      break;
    }
    case Kind::cell: {
      guards.add(v->source, GuardKind::type, type_object);
      give<Cell>(v).is_loaded = false;
      break;
    }
    case Kind::object:
      guards.add(v->source, GuardKind::type, type_object);
      guards.add_type_version(t);
      give<Object>(v);
      if (is_number_class(t)) {   // its value decides what is computed, and comparing it could run code of the class
        guards.add(v->source, GuardKind::id, o);
        body<Object>(v).plain = numbers.plain_number(o);
      }
      break;
    case Kind::partial: {
      guards.add(v->source, GuardKind::type, type_object);
      Partial& p = give<Partial>(v);
      PyObject* func = keep(PyObject_GetAttr(o, names().func));
      PyObject* args = keep(PyObject_GetAttr(o, names().args));
      PyObject* keywords = keep(PyObject_GetAttr(o, names().keywords));
      p.function = wrap(func, guards.sources().attr(v->source, names().func));
      SourceRef args_source = guards.sources().attr(v->source, names().args), keywords_source = guards.sources().attr(v->source, names().keywords);
      guards.add(args_source, GuardKind::length, nullptr, PyTuple_GET_SIZE(args));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) p.args.push_back(wrap(PyTuple_GET_ITEM(args, i), guards.sources().of(args_source, SourceKind::tuple_item, nullptr, i)));
      PyObject* key_tuple = keep(PySequence_Tuple(keywords));
      guards.add(keywords_source, GuardKind::dict_keys, key_tuple);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key_tuple); ++i) {
        PyObject* key = PyTuple_GET_ITEM(key_tuple, i);
        p.keywords.emplace_back(key, wrap(PyDict_GetItem(keywords, key), guards.sources().of(keywords_source, SourceKind::dict_item, key)));
      }
      break;
    }
    default:   // classes, modules, C functions, and what is only carried
      if (k == Kind::opaque && library.meet_array(v)) break;   // what is read of it is guarded then
      guards.add(v->source, GuardKind::id, o);
      if (k == Kind::module) guards.add(v->source, GuardKind::type, type_object);   // it may be given another class, with properties
      break;
  }
  return v;
}

void Values::load(Value* v) {
  Sequence& s = body<Sequence>(v);
  s.is_loaded = true;
  PyObject* o = v->real;
  if (!s.is_counted) guards.add(v->source, GuardKind::length, nullptr, PyList_GET_SIZE(o));
  s.is_counted = true;
  const bool is_tuple = PyTuple_Check(o), is_list = PyList_Check(o);
  PyObject* fast = is_tuple || is_list ? o : keep(PySequence_List(o));   // a deque
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
  s.items.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(fast, i);
    if (s.as_constant || !v->source) s.items.push_back(wrap_constant_object(item));
    else if (is_tuple) s.items.push_back(wrap(item, v->source->kind == SourceKind::constant ? guards.sources().constant(item) : guards.sources().of(v->source, SourceKind::tuple_item, nullptr, i)));
    else s.items.push_back(wrap(item, guards.sources().of(v->source, SourceKind::list_item, nullptr, i)));
  }
  s.items.insert(s.items.end(), s.appended.begin(), s.appended.end());
  s.appended.clear();
}

void Values::load_function(Value* v) {
  Function& f = body<Function>(v);
  f.is_loaded = true;
  auto* o = reinterpret_cast<PyFunctionObject*>(v->real);
  f.globals_real = o->func_globals;
  f.builtins_real = o->func_builtins;
  f.name = o->func_name;
  f.qualname = o->func_qualname;
  const bool fixed = !v->source || v->source->kind == SourceKind::constant;
  auto part = [&](SourceKind kind, PyObject* part_object) { return fixed ? guards.sources().constant(part_object) : guards.sources().of(v->source, kind); };
  if (o->func_defaults) f.defaults = wrap(o->func_defaults, part(SourceKind::function_defaults, o->func_defaults));
  if (o->func_kwdefaults) f.keyword_defaults = wrap(o->func_kwdefaults, part(SourceKind::function_kwdefaults, o->func_kwdefaults));
  if (o->func_closure) {
    SourceRef closure = part(SourceKind::function_closure, o->func_closure);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o->func_closure); ++i) {
      PyObject* cell = PyTuple_GET_ITEM(o->func_closure, i);
      f.closure.push_back(wrap(cell, fixed ? guards.sources().constant(cell) : guards.sources().of(closure, SourceKind::tuple_item, nullptr, i)));
    }
  }
  if (fixed) return;
  frame_stack.label_stack(v, PyUnicode_AsUTF8(f.qualname));
  SourceRef globals = guards.sources().of(v->source, SourceKind::function_globals);
  if (f.globals_real == view.function->func_globals && v->source->kind != SourceKind::function) {   // not by identity: the entry would keep the module alive, and that the entry
    guards.add(globals, GuardKind::same_object);
    guards.last().other = guards.sources().of(guards.sources().function(), SourceKind::function_globals);
  } else {
    guards.add(globals, GuardKind::id, f.globals_real);
  }
}

Value* Values::make_tuple(std::vector<Value*> items, PyTypeObject* type) {
  Value* v = new_value(Kind::tuple, type);
  give<Sequence>(v).items = std::move(items);
  return v;
}
Value* Values::make_list(std::vector<Value*> items) {
  Value* v = new_value(Kind::list, &PyList_Type);
  give<Sequence>(v).items = std::move(items);
  return v;
}
Value* Values::make_dict() {
  Value* v = new_value(Kind::dict, &PyDict_Type);
  give<Mapping>(v).items = keep(PyDict_New());
  return v;
}
Value* Values::make_set() {
  Value* v = new_value(Kind::set, &PySet_Type);
  Mapping& m = give<Mapping>(v);
  m.items = keep(PyDict_New());
  m.order = keep(PySet_New(nullptr));
  return v;
}
Value* Values::make_slice(Value* start, Value* stop, Value* step) {
  Value* v = new_value(Kind::slice, &PySlice_Type);
  give<Slice>(v) = {start, stop, step};
  return v;
}
Value* Values::make_cell(Value* contents) {
  Value* v = new_value(Kind::cell, &PyCell_Type);
  give<Cell>(v).contents = contents;
  return v;
}
Value* Values::make_method(Value* function, Value* self) {
  Value* v = new_value(Kind::method, &PyMethod_Type);
  give<Method>(v) = {function, self};
  return v;
}
Value* Values::bind_c_method(PyObject* descriptor, Value* self) {
  Value* v = make_method(wrap_constant_object(descriptor), self);
  v->type = Py_TYPE(descriptor) == known().wrapper_descriptor ? known().method_wrapper : &PyCFunction_Type;
  return v;
}
Value* Values::make_iterator(Iterator::What what, Value* base) {
  static PyTypeObject* const types[] = {&PyListIter_Type, &PyTupleIter_Type, nullptr};
  Value* v = new_value(Kind::iterator, types[0]);
  Iterator& i = give<Iterator>(v);
  i.what = what;
  i.base = base;
  const KnownTypes& k = known();
  switch (what) {
    case Iterator::What::zip: v->type = k.zip; break;
    case Iterator::What::enumerate: v->type = k.enumerate; break;
    case Iterator::What::map: v->type = k.map; break;
    case Iterator::What::filter: v->type = k.filter; break;
    case Iterator::What::reversed: v->type = base && base->type == &PyList_Type ? &PyListRevIter_Type : k.reversed; break;
    case Iterator::What::sequence: if (base && PyType_IsSubtype(base->type, &PyTuple_Type)) v->type = &PyTupleIter_Type; break;
    case Iterator::What::callable: v->type = &PySeqIter_Type; break;
    case Iterator::What::sentinel: v->type = &PyCallIter_Type; break;
    default: break;
  }
  return v;
}
/// An instance that the trace makes: its content, where its class derives from a container, is empty.
Value* Values::make_object(PyTypeObject* type) {
  Kind k = kind_of_type(type, nullptr);
  Value* v = new_value(k, type);
  if (k == Kind::dict) give<Mapping>(v).items = keep(PyDict_New());
  else if (k == Kind::list || k == Kind::tuple) give<Sequence>(v);
  else if (k == Kind::set) { Mapping& m = give<Mapping>(v); m.items = keep(PyDict_New()); m.order = keep(PySet_New(nullptr)); }
  else { v->kind = Kind::object; give<Object>(v); }
  guards.add_type_version(type);
  return v;
}
Value* Values::make_function() {
  Value* v = new_value(Kind::function, &PyFunction_Type);
  give<Function>(v);
  return v;
}
Value* Values::make_view(View::What what, Value* dict) {
  static PyTypeObject* const types[] = {&PyDictKeys_Type, &PyDictValues_Type, &PyDictItems_Type};
  Value* v = new_value(Kind::view, types[static_cast<int>(what)]);
  give<View>(v) = {what, dict};
  return v;
}
Value* Values::make_super(Value* type, Value* self, PyTypeObject* start) {
  Value* v = new_value(Kind::super, &PySuper_Type);
  give<Super>(v) = {type, self, start};
  return v;
}
Value* Values::make_partial(Value* function, const Args& bound) {
  Value* v = new_value(Kind::partial, known().partial);
  Partial& p = give<Partial>(v);
  p.function = function;
  if (kind(function) == Kind::partial) {   // as functools does: a partial of a partial is flat
    Partial inner = body<Partial>(function);
    PyObject** own = function->real ? _PyObject_GetDictPtr(function->real) : nullptr;
    if (!(own && *own) && !(inner.attributes && mappings.dict_size(inner.attributes))) p = {inner.function, inner.args, inner.keywords};   // one with attributes stays what it is
  }
  p.args.insert(p.args.end(), bound.positional, bound.positional + bound.count);
  for (size_t i = 0; i < bound.keyword_count; ++i) {
    bool replaced = false;
    for (auto& k : p.keywords)
      if (PyUnicode_Compare(k.first, bound.keywords[i].first) == 0) { k.second = bound.keywords[i].second; replaced = true; }
    if (!replaced) p.keywords.push_back(bound.keywords[i]);
  }
  return v;
}
Value* Values::make_tensor(PyObject* fake) {
  if (auto it = by_fake_.find(fake); it != by_fake_.end()) return it->second;
  Value* v = new_value(Kind::tensor, known().tensor);
  give<Tensor>(v).fake = keep(Py_NewRef(fake));
  by_fake_[fake] = v;
  return v;
}
void Values::bind_fake(Value* v, PyObject* fake) { by_fake_[fake] = v; }

PyObject* Values::as_constant(Value* v) {
  force(v);
  switch (v->kind) {
    case Kind::klass: return !classes.has_made_classes() || !classes.is_made_class(v->real) ? v->real : nullptr;
    case Kind::constant: return v->real;
    case Kind::tuple: {
      Sequence& s = body<Sequence>(v);
      if (s.as_constant) return s.as_constant;
      if (v->type != &PyTuple_Type && v->type != known().size) return nullptr;
      auto& all = items(v);
      std::vector<PyObject*> parts;
      parts.reserve(all.size());
      for (Value* i : all) {
        PyObject* c = as_constant(i);
        if (!c) return nullptr;
        parts.push_back(c);
      }
      // A real one stays the object that it is, unless its items are other numbers here.
      if (v->real && Py_TYPE(v->real) == v->type && std::ranges::equal(parts, std::span(reinterpret_cast<PyTupleObject*>(v->real)->ob_item, parts.size()))) return s.as_constant = v->real;
      PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(parts.size()));
      for (size_t i = 0; i < parts.size(); ++i) PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i), Py_NewRef(parts[i]));
      if (v->type == known().size) {
        PyObject* size = PyObject_CallOneArg(reinterpret_cast<PyObject*>(known().size), t);
        Py_DECREF(t);
        if (!size) { PyErr_Clear(); return nullptr; }
        t = size;
      }
      return s.as_constant = keep(t);
    }
    case Kind::slice: {
      Slice& s = body<Slice>(v);
      PyObject *a = as_constant(s.start), *b = as_constant(s.stop), *c = as_constant(s.step);
      return a && b && c ? keep(PySlice_New(a, b, c)) : nullptr;
    }
    case Kind::set: {
      if (v->type != &PyFrozenSet_Type) return nullptr;
      if (v->real && !v->is_changed) { guards.add(v->source, GuardKind::const_eq, v->real); return v->real; }
      for (PyObject* k : mappings.keys_of(v)) if (mappings.stands_for(k)) return nullptr;
      return keep(PyFrozenSet_New(body<Mapping>(v).order));
    }
    default: return nullptr;
  }
}

Value* Values::cell_contents(Value* cell) {
  force(cell);
  Cell& c = body<Cell>(cell);
  if (!c.is_loaded) {
    c.is_loaded = true;
    PyObject* o = PyCell_GET(cell->real);
    if (o) c.contents = wrap(o, cell->source->kind == SourceKind::constant ? guards.sources().of(cell->source, SourceKind::cell_contents) : guards.sources().of(cell->source, SourceKind::cell_contents));
    else stop("empty-cell", "a closure variable that has no value yet is read");
  }
  return c.contents;
}
void Values::set_cell(Value* cell, Value* contents) {
  force(cell);
  Cell& c = body<Cell>(cell);
  c.is_loaded = true;
  c.contents = contents;
  effects.mark_changed(cell);
}

std::vector<Value*> Values::met_with_identity(PyTypeObject* t) {
  std::vector<Value*> all;
  for (auto& [o, v] : by_object_) if (Py_TYPE(o) == t) all.push_back(v);
  return all;
}

bool Values::same_identity(Value* a, Value* b) {
  if (a == b) return true;
  force(a);
  force(b);
  if (a->real && b->real && a->real == b->real) {
    if (frames::SizeLog* log = frames::size_log(); log && (a->type == &PyLong_Type || a->type == &PyFloat_Type)) log->used(a->real);   // small numbers are one object
    return true;
  }
  if (a->kind == Kind::constant && b->kind == Kind::constant) {
    if (frames::SizeLog* log = frames::size_log(); log && a->type == b->type && (a->type == &PyLong_Type || a->type == &PyFloat_Type)) { log->used(a->real); log->used(b->real); }
    // Equal small numbers and text may or may not be one object: as CPython has it for these two.
    return false;
  }
  if (a->kind == Kind::method || b->kind == Kind::method) return false;
  if (a->real && b->real && a->source && b->source && a->kind == b->kind && has_identity(a->kind)) {
    guards::Guard g;
    g.source = a->source;
    g.kind = GuardKind::different_objects;
    g.others = {b->source};
    guards.add(std::move(g));
  }
  return false;
}

bool Values::stands_for_c(Value* f) {
  PyObject* globals = f->real ? function(f).globals_real : nullptr;
  return globals && is_polyfill_module(PyDict_GetItemString(globals, "__name__"));
}

std::string Values::describe(Value* v) {
  force(v);
  has_described_weak_references_ |= is_of_weak_references(v->real, v->type);
  if (v->kind == Kind::tensor) return v->type == known().tensor || v->type == known().parameter || !v->type ? "a tensor" : std::string("a tensor of the class ") + v->type->tp_name;
  if (number_of(v)) return std::string("a number (") + v->type->tp_name + ") that was read from a tensor";
  if (v->kind == Kind::klass) return std::string("the class ") + reinterpret_cast<PyTypeObject*>(v->real)->tp_name;
  if (v->real && (v->kind == Kind::builtin || v->kind == Kind::function || v->kind == Kind::module)) {
    PyObject* name = PyObject_GetAttr(v->real, v->kind == Kind::module ? names().__name__ : names().__qualname__);
    if (!name) PyErr_Clear();
    PyObject* module = v->kind == Kind::module ? nullptr : PyObject_GetAttr(v->real, names().__module__);
    if (!module) PyErr_Clear();
    std::string text;
    if (module && PyUnicode_Check(module)) text = std::string(PyUnicode_AsUTF8(module)) + ".";
    if (name && PyUnicode_Check(name)) text += PyUnicode_AsUTF8(name);
    Py_XDECREF(name);
    Py_XDECREF(module);
    if (!text.empty()) return text;
  }
  if (v->kind == Kind::function) return std::string("the function ") + PyUnicode_AsUTF8(body<Function>(v).code->co_name);
  return std::string("a value of type ") + (v->type ? v->type->tp_name : "?");
}

}  // namespace cutaway::capture
