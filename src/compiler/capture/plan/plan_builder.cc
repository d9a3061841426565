#include "compiler/capture/plan/plan_builder.h"

#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/run_plan.h"
#include "core/ir/edit.h"

namespace cutaway::capture {

using frames::Effect;
using frames::kNothing;
using frames::kNull;
using frames::Recipe;
using frames::RecipeId;
using guards::ObjectRef;

namespace {
// Functions and instances of _polyfills are what capture has in the place of objects of C.
bool stands_for_c(PyObject* globals) { return globals && is_polyfill_module(PyDict_GetItemString(globals, "__name__")); }
bool stands_for_c(PyTypeObject* type) { return is_polyfill_module(bytecode::in_type_dict(type, "__module__")); }
}  // namespace

void PlanBuilder::refuse(Value* v, const char* why) {
  throw frames::Skip{{.id = "cannot-be-rebuilt", .what = values.describe(v) + " is needed after the graph and " + why, .stack = frame_stack.user_stack()}};
}

void PlanBuilder::refuse_stand_in(Value* v) {
  throw frames::Skip{{.id = "stand-in", .what = values.describe(v) + " is needed after the graph, and capture has a replacement in Python in its place", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::end_before_made}};
}

RecipeId PlanBuilder::constant(PyObject* o) {
  if (Library::is_identity_number(o))
    throw frames::Skip{{.id = "cannot-be-rebuilt", .what = "the id of an object that the compiled function created is needed after the graph", .stack = frame_stack.user_stack()}};
  if (auto it = fresh_.find(o); it != fresh_.end()) return it->second;
  if (numbers.is_made_number(o)) {
    PyTypeObject* base = Py_TYPE(o);
    while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
    const RecipeId make = constant(values.keep(PyObject_GetAttr(reinterpret_cast<PyObject*>(base), names().__new__)));
    return fresh_[o] = call({make, constant(reinterpret_cast<PyObject*>(Py_TYPE(o))), recipe(numbers.plain_number(o))});
  }
  if (PyTuple_CheckExact(o) && numbers.holds_made_number(o)) {
    Recipe t;
    t.kind = Recipe::Kind::tuple;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) t.parts.push_back(constant(PyTuple_GET_ITEM(o, i)));
    return fresh_[o] = plan_.add(std::move(t));
  }
  Recipe r;
  r.kind = Recipe::Kind::constant;
  r.object = ObjectRef::borrow(o);
  return plan_.add(std::move(r));
}
RecipeId PlanBuilder::globals(PyObject* dict) {
  if (dict != view.function->func_globals) return constant(dict);
  Recipe r;
  r.kind = Recipe::Kind::source;
  r.source = guards.sources().of(guards.sources().function(), SourceKind::function_globals);
  return plan_.add(std::move(r));
}
RecipeId PlanBuilder::globals_of(Value* v, const Function& f) {
  if (f.globals_real) return globals(f.globals_real);
  interpreter.end_earlier(f.globals_made_at);   // CPython runs that exec()
  throw frames::Skip{{.id = "made-globals", .what = values.describe(v) + " is needed after the graph, and its global names are in a dict that the compiled function gave to exec() or eval()",
                      .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::end_before_made}};
}
RecipeId PlanBuilder::call(std::vector<RecipeId> parts, PyObject* keyword_names) {
  Recipe r;
  r.kind = Recipe::Kind::call;
  r.parts = std::move(parts);
  r.object = ObjectRef::borrow(keyword_names);
  return plan_.add(std::move(r));
}
RecipeId PlanBuilder::sequence(Recipe::Kind kind, const std::vector<Value*>& items) {
  Recipe r;
  r.kind = kind;
  for (Value* i : items) r.parts.push_back(recipe(i));
  return plan_.add(std::move(r));
}

RecipeId PlanBuilder::recipe(Value* v) {
  if (auto it = made_.find(v); it != made_.end()) return it->second;
  if (!open_.insert(v).second) refuse(v, "contains itself");
  const RecipeId id = make(v);
  open_.erase(v);
  made_[v] = id;
  return id;
}

RecipeId PlanBuilder::make(Value* v) {
  if ((v->real && classes.holds_made_class(v->real)) || (v->type && classes.is_made_class(reinterpret_cast<PyObject*>(v->type)))) {
    interpreter.end_earlier(classes.made_class_at(v->real && !classes.is_made_class(reinterpret_cast<PyObject*>(v->type)) ? v->real : reinterpret_cast<PyObject*>(v->type)));
    refuse(v, "is a class that the compiled function defines, or an instance of one");
  }
  if (v->source && v->real) {
    if (v->source->kind == SourceKind::constant) return constant(v->real);
    Recipe r;
    r.kind = Recipe::Kind::source;
    r.source = v->source;
    return plan_.add(std::move(r));
  }
  switch (v->kind) {
    case Kind::constant: case Kind::klass: case Kind::module: case Kind::builtin: return constant(v->real);
    case Kind::tensor: {
      if (TorchCalls::is_wrapper(unwrap_tensor(body<Tensor>(v).fake))) refuse(v, "belongs to a function transform");
      if (torch_calls.is_shell(v)) return shell(v);
      Recipe r;
      r.kind = Recipe::Kind::output;
      r.index = static_cast<uint32_t>(outputs_.size());
      outputs_.push_back(v);
      RecipeId id = plan_.add(std::move(r));
      const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
      if (v->type == known().parameter || v->type == known().buffer || (v->type != known().tensor && fake.requires_grad() && fake.is_leaf())) {
        // The very tensor that the graph computed with: gradients go to it.
        Effect e;
        e.kind = Effect::Kind::set_attr;
        e.target = id;
        e.name = ObjectRef::borrow(names().__class__);
        e.value = constant(reinterpret_cast<PyObject*>(v->type));
        plan_.effects.push_back(std::move(e));
      } else if (v->type != known().tensor) {
        static PyObject* const as_subclass = find_member("torch", "Tensor.as_subclass");
        id = call({constant(as_subclass), id, constant(reinterpret_cast<PyObject*>(v->type))});
      }
      if (Value* d = body<Tensor>(v).attributes)
        for (PyObject* k : mappings.keys_of(d)) {
          Effect e;
          e.kind = Effect::Kind::set_attr;
          e.target = id;
          e.name = ObjectRef::borrow(k);
          e.value = recipe(mappings.dict_get(d, k));
          plan_.effects.push_back(std::move(e));
        }
      if (Value* gradient = body<Tensor>(v).grad) {
        Effect e;
        e.kind = Effect::Kind::set_attr;
        e.target = id;
        e.name = ObjectRef::borrow(names().grad);
        e.value = recipe(gradient);
        plan_.effects.push_back(std::move(e));
      }
      return id;
    }
    case Kind::tuple: {
      if (body<Sequence>(v).as_constant && !v->source) return constant(body<Sequence>(v).as_constant);
      const RecipeId base = sequence(Recipe::Kind::tuple, values.items(v));
      if (v->type == &PyTuple_Type) return base;
      if (v->type == known().size) return call({constant(reinterpret_cast<PyObject*>(v->type)), base});
      if (!(v->type->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyObject_HasAttrString(reinterpret_cast<PyObject*>(v->type), "n_sequence_fields"))
        return call({constant(reinterpret_cast<PyObject*>(v->type)), base});   // a struct sequence takes one sequence
      if (Value* d = body<Sequence>(v).attributes; d && mappings.dict_size(d)) return instance(v, base, d);
      static PyObject* const make_tuple = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyTuple_Type), "__new__");
      return call({constant(make_tuple), constant(reinterpret_cast<PyObject*>(v->type)), base});
    }
    case Kind::list: {
      const RecipeId base = sequence(Recipe::Kind::list, values.items(v));
      if (v->type == &PyList_Type) return base;
      if (v->type == known().deque) {
        const Py_ssize_t limit = body<Sequence>(v).limit;
        return call({constant(reinterpret_cast<PyObject*>(v->type)), base, constant(limit < 0 ? Py_None : values.keep(PyLong_FromSsize_t(limit)))});
      }
      return instance(v, base, body<Sequence>(v).attributes);
    }
    case Kind::dict: {
      // Of an object that the plan makes: its own dict, not one that is equal.
      Value *partial = body<Mapping>(v).partial, *owner = body<Mapping>(v).owner;
      const bool can_leave = owner && owner != v && !owner->real && !classes.is_made_class(reinterpret_cast<PyObject*>(owner->type));
      if (!v->real && (partial || can_leave)) {
        static PyObject* const read = PyObject_GetAttrString(PyImport_ImportModule("builtins"), "getattr");
        const RecipeId of = recipe(partial ? partial : owner);
        return call({constant(read), of, constant(partial ? names().keywords : names().__dict__)});
      }
      return mapping(v);
    }
    case Kind::set: {
      if (asks_keys(v)) refuse(v, "has items that define __hash__, which may look at what the captured code has changed");
      std::vector<Value*> all;
      for (PyObject* k : mappings.keys_of(v)) all.push_back(mappings.value_of_key(k));
      const RecipeId base = sequence(PyType_IsSubtype(v->type, &PyFrozenSet_Type) ? Recipe::Kind::frozenset : Recipe::Kind::set, all);
      if (is_user_class(v->type) && PyType_IsSubtype(v->type, &PyFrozenSet_Type) && !(body<Mapping>(v).attributes && mappings.dict_size(body<Mapping>(v).attributes))) {
        static PyObject* const make_frozen = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyFrozenSet_Type), "__new__");
        return call({constant(make_frozen), constant(reinterpret_cast<PyObject*>(v->type)), base});
      }
      if (PyType_IsSubtype(v->type, &PyFrozenSet_Type) && is_user_class(v->type)) refuse(v, "is a frozenset with attributes");
      return is_user_class(v->type) ? instance(v, base, body<Mapping>(v).attributes) : base;
    }
    case Kind::slice: { Slice& s = body<Slice>(v); return sequence(Recipe::Kind::slice, {s.start, s.stop, s.step}); }
    case Kind::cell: {
      Recipe r;
      r.kind = Recipe::Kind::cell;
      Value* c = body<Cell>(v).contents;
      r.parts.push_back(c ? recipe(c) : kNothing);
      return plan_.add(std::move(r));
    }
    case Kind::method:
      if (Library::is_array_value(body<Method>(v).self)) {   // numpy's own
        static PyObject* const read = find_member("builtins", "getattr");
        return call({constant(read), recipe(body<Method>(v).self), constant(values.function(body<Method>(v).function).name)});
      }
      return sequence(Recipe::Kind::method, {body<Method>(v).function, body<Method>(v).self});
    case Kind::function: {
      Function& f = values.function(v);
      Recipe r;
      r.kind = Recipe::Kind::function;
      r.object = ObjectRef::borrow(f.qualname);
      const RecipeId code = constant(reinterpret_cast<PyObject*>(f.code)), globals = globals_of(v, f);
      RecipeId closure = kNothing;
      if (!f.closure.empty()) closure = sequence(Recipe::Kind::tuple, f.closure);
      const RecipeId defaults = f.defaults ? recipe(f.defaults) : kNothing, keyword_defaults = f.keyword_defaults ? recipe(f.keyword_defaults) : kNothing;
      RecipeId annotations = kNothing;
      if (f.annotations) {
        if (values.kind(f.annotations) == Kind::tuple) {   // (name, value, name, value, …), as MAKE_FUNCTION takes it
          Recipe d;
          d.kind = Recipe::Kind::dict;
          for (Value* i : values.items(f.annotations)) d.parts.push_back(recipe(i));
          annotations = plan_.add(std::move(d));
        } else annotations = recipe(f.annotations);
      }
      r.parts = {code, globals, defaults, keyword_defaults, closure, annotations};
      if (stands_for_c(f.globals_real)) refuse_stand_in(v);
      const RecipeId made = plan_.add(std::move(r));
      // Attributes are set afterwards: __wrapped__ and its like.
      auto set = [&](PyObject* name, RecipeId value) {
        Effect e;
        e.kind = Effect::Kind::set_attr;
        e.target = made;
        e.name = ObjectRef::borrow(name);
        e.value = value;
        plan_.effects.push_back(std::move(e));
      };
      if (f.name && f.name != f.code->co_name) set(names().__name__, constant(f.name));
      if (f.attributes)
        for (PyObject* k : mappings.keys_of(f.attributes)) set(k, recipe(mappings.dict_get(f.attributes, k)));
      return made;
    }
    case Kind::object: {
      if (tracebacks.is_traceback(v)) refuse(v, "belongs to an exception that capture raised");
      if (Library::is_array_value(v)) {
        SourceRef outside = nullptr;
        if (library.array_outside(v, &outside)) {
          Recipe r;
          r.kind = Recipe::Kind::source;
          r.source = outside;
          return plan_.add(std::move(r));
        }
        static PyObject* const to_array = find_member("torch", "Tensor.numpy");
        static PyObject* const to_number = find_member("cutaway._polyfills.numpy_arrays", "to_number");
        return call({constant(library.is_array_number(v) ? to_number : to_array), recipe(library.tensor_of_array(v))});
      }
      if (PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
        if (const auto step = tracebacks.raised_at(v)) {   // CPython raises it, and gives it its traceback
          interpreter.end_earlier(step);
          throw frames::Skip{{.id = "exception-attribute", .what = values.describe(v) + " is needed after the graph, and has a traceback", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::end_before_made}};
        }
        Object& o = body<Object>(v);
        static PyObject* const make_exception = PyObject_GetAttrString(PyExc_BaseException, "__new__");
        if ((o.dict && mappings.dict_size(o.dict)) || !o.slots.empty()) refuse(v, "is an exception with attributes");
        const auto* plain = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
        const PyTypeObject* base = v->type;
        while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
        if (base->tp_new != plain->tp_new || base->tp_init != plain->tp_init) {   // it keeps more than its arguments
          if (base != v->type) refuse(v, "is derived from an exception whose constructor is written in C");
          std::vector<RecipeId> parts{constant(reinterpret_cast<PyObject*>(v->type))};
          if (o.arguments) for (Value* a : values.items(o.arguments)) parts.push_back(recipe(a));
          return call(std::move(parts));
        }
        std::vector<RecipeId> parts{constant(make_exception), constant(reinterpret_cast<PyObject*>(v->type))};
        if (o.arguments) for (Value* a : values.items(o.arguments)) parts.push_back(recipe(a));
        return call(std::move(parts));
      }
      return instance(v, body<Object>(v).plain ? recipe(body<Object>(v).plain) : kNothing, body<Object>(v).dict);
    }
    case Kind::view: {
      View& w = body<View>(v);
      static PyObject* const methods[] = {PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), "keys"), PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), "values"),
                                          PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), "items")};
      const RecipeId dict = recipe(w.dict);
      return call({constant(methods[static_cast<int>(w.what)]), dict});
    }
    case Kind::partial: {
      Partial& p = body<Partial>(v);
      if (p.attributes && mappings.dict_size(p.attributes)) refuse(v, "has attributes that the captured code has put on it");
      std::vector<RecipeId> parts{constant(reinterpret_cast<PyObject*>(known().partial)), recipe(p.function)};
      for (Value* a : p.args) parts.push_back(recipe(a));
      PyObject* names = PyTuple_New(static_cast<Py_ssize_t>(p.keywords.size()));
      for (size_t i = 0; i < p.keywords.size(); ++i) {
        PyTuple_SET_ITEM(names, static_cast<Py_ssize_t>(i), Py_NewRef(p.keywords[i].first));
        parts.push_back(recipe(p.keywords[i].second));
      }
      values.keep(names);
      return call(std::move(parts), p.keywords.empty() ? nullptr : names);
    }
    case Kind::iterator: return iterator(v);
    case Kind::generator: return generator(v);
    case Kind::super: refuse(v, "is a super object");
    case Kind::opaque:
      if (number_of(v)) {
        Recipe r;
        r.kind = Recipe::Kind::output;
        r.index = static_cast<uint32_t>(outputs_.size());
        outputs_.push_back(v);
        return plan_.add(std::move(r));
      }
      for (const auto& c : leaves.inference_contexts())
        if (c.object == v) return inference_context(c);
      break;
    case Kind::lazy: case Kind::null: break;
  }
  if (v->real) return constant(v->real);
  refuse(v, "cannot be created outside of capture");
}

// A tensor of a class with __torch_dispatch__ that the trace made: by the same call, around what it has inside.
RecipeId PlanBuilder::shell(Value* v) {
  static PyObject* const make_shell = find_member("torch", "Tensor._make_wrapper_subclass");
  const TorchCalls::ShellArguments& given = torch_calls.arguments_of_shell(v);
  std::vector<RecipeId> parts{constant(make_shell), constant(reinterpret_cast<PyObject*>(v->type))};
  for (Value* a : given.positional) parts.push_back(recipe(a));
  PyObject* words = values.keep(PyTuple_New(static_cast<Py_ssize_t>(given.keywords.size())));
  for (size_t i = 0; i < given.keywords.size(); ++i) {
    PyTuple_SET_ITEM(words, static_cast<Py_ssize_t>(i), Py_NewRef(given.keywords[i].first));
    parts.push_back(recipe(given.keywords[i].second));
  }
  const RecipeId made = call(std::move(parts), given.keywords.empty() ? nullptr : words);
  const auto set = [&](PyObject* name, RecipeId x) {
    Effect e;
    e.kind = Effect::Kind::set_attr;
    e.target = made;
    e.name = ObjectRef::borrow(name);
    e.value = x;
    plan_.effects.push_back(std::move(e));
  };
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  if (unwrap_tensor(body<Tensor>(v).fake).requires_grad()) set(requires_grad, constant(Py_True));
  if (Value* d = body<Tensor>(v).attributes)
    for (PyObject* k : mappings.keys_of(d)) set(k, recipe(mappings.dict_get(d, k)));
  return made;
}

// Objects are made before effects happen, and a hash or comparison of the program's that is asked then must not see what was before them.
bool PlanBuilder::asks_keys(Value* v) {
  if (effects.changed().empty()) return false;
  for (PyObject* k : mappings.keys_of(v)) if (mappings.has_own_hash(k)) return true;
  return false;
}

RecipeId PlanBuilder::mapping(Value* v) {
  if (Value* dict = classes.behind_proxy(v); dict != v) return call({constant(reinterpret_cast<PyObject*>(v->type)), recipe(dict)});
  if (asks_keys(v)) {   // filled behind the other effects
    if (v->type != &PyDict_Type) refuse(v, "has keys that define __hash__, which may look at what the captured code has changed");
    Recipe empty;
    empty.kind = Recipe::Kind::dict;
    const RecipeId made = plan_.add(std::move(empty));
    for (PyObject* k : mappings.keys_of(v)) {
      Effect e;
      e.kind = Effect::Kind::set_item;
      e.target = made;
      e.key = recipe(mappings.value_of_key(k));
      e.value = recipe(mappings.dict_get(v, k));
      late_.push_back(std::move(e));
    }
    return made;
  }
  Recipe r;
  r.kind = Recipe::Kind::dict;
  for (PyObject* k : mappings.keys_of(v)) {
    const RecipeId key = recipe(mappings.value_of_key(k));
    r.parts.push_back(key);
    r.parts.push_back(recipe(mappings.dict_get(v, k)));
  }
  const RecipeId base = plan_.add(std::move(r));
  Mapping& m = body<Mapping>(v);
  if (v->type == &PyDict_Type) return base;
  auto* type = reinterpret_cast<PyObject*>(v->type);
  const bool has_attributes = m.attributes && mappings.dict_size(m.attributes) != 0;   // an OrderedDict of C may have them, see _metadata of a state_dict
  if ((v->type == known().ordered_dict && !has_attributes) || v->type == known().mappingproxy) return call({constant(type), base});
  if (v->type == known().defaultdict) return call({constant(type), m.default_factory ? recipe(m.default_factory) : constant(Py_None), base});
  return instance(v, base, m.attributes);
}

RecipeId PlanBuilder::instance(Value* v, RecipeId base, Value* attributes) {
#if PY_VERSION_HEX < 0x030C0000
  if (v->type == known().cached_property) refuse(v, "has a lock, which capture leaves out");
#endif
  if (stands_for_c(v->type)) {
    static PyObject* const target_name = PyUnicode_InternFromString("target");
    Value* target = attributes && std::string_view(v->type->tp_name) == "Reference" ? mappings.dict_get(attributes, target_name) : nullptr;
    if (target) return call({constant(reinterpret_cast<PyObject*>(known().weakref)), recipe(target)});
    if (!may_stand_in_ || !builtins.is_stand_in_iterator(v)) { builtins.end_before_stand_in(v); refuse_stand_in(v); }
  }
  Recipe r;
  r.kind = Recipe::Kind::instance;
  r.object = ObjectRef::borrow(reinterpret_cast<PyObject*>(v->type));
  r.base = base;
  auto add = [&](PyObject* name, Value* x) {
    r.names.push_back(ObjectRef::borrow(name));
    r.parts.push_back(recipe(x));
  };
  if (attributes)
    for (PyObject* k : mappings.keys_of(attributes)) {
      PyObject* on_class = PyUnicode_Check(k) ? _PyType_Lookup(v->type, k) : nullptr;
      if (!PyUnicode_Check(k) || (on_class && is_data_descriptor(on_class))) refuse(v, "has something in its dictionary that is no attribute");
      add(k, mappings.dict_get(attributes, k));
    }
  if (v->kind == Kind::object)
    for (auto& [name, x] : body<Object>(v).slots) if (x) add(name, x);
  return plan_.add(std::move(r));
}

// --- effects ---

void PlanBuilder::dict_effects(Value* v) {
  Mapping& m = body<Mapping>(v);
  auto same = [&](PyObject* key, Value* now) {
    // Only what was read from this very place: an equal value from elsewhere may differ at the next call.
    return now->source && now->source == mappings.item_source(v, key);
  };
  const bool is_attributes = m.owner && m.owner != v && m.owner->kind != Kind::module;
  const bool is_namespace = m.owner && !is_attributes;
  // Where the class has a property or a slot of that name, an attribute is not what the dictionary has.
  const auto is_attribute = [&](PyObject* key) {
    if (!is_attributes || !PyUnicode_Check(key)) return false;
    PyObject* on_class = _PyType_Lookup(m.owner->type, key);
    return !on_class || !is_data_descriptor(on_class);
  };
  auto store = [&](PyObject* key, Value* x) {
    Effect e;
    if (is_attribute(key)) { e.kind = Effect::Kind::set_attr; e.target = recipe(m.owner); e.name = ObjectRef::borrow(key); }
    else if (m.is_globals) { e.kind = Effect::Kind::store_global; e.name = ObjectRef::borrow(key); }
    else { e.kind = Effect::Kind::set_item; e.target = is_namespace ? constant(v->real) : recipe(v); e.key = recipe(mappings.value_of_key(key)); }
    e.value = recipe(x);
    plan_.effects.push_back(std::move(e));
  };
  auto remove = [&](PyObject* key) {
    Effect e;
    if (is_attribute(key)) { e.kind = Effect::Kind::delete_attr; e.target = recipe(m.owner); e.name = ObjectRef::borrow(key); }
    else if (m.is_globals) { e.kind = Effect::Kind::delete_global; e.name = ObjectRef::borrow(key); }
    else { e.kind = Effect::Kind::delete_item; e.target = is_namespace ? constant(v->real) : recipe(v); e.key = recipe(mappings.value_of_key(key)); }
    plan_.effects.push_back(std::move(e));
  };
  if (!m.is_loaded) {
    std::unordered_set<PyObject*> seen;
    for (PyObject* key : m.written)
      if (seen.insert(key).second) {
        PyObject* n = PyDict_GetItem(m.items, key);
        Value* now = static_cast<Value*>(PyLong_AsVoidPtr(n));
        if (!same(key, now)) store(key, now);
      }
    return;
  }
  // What stays keeps its place, new keys come last: then single stores do; else the content is replaced as a whole.
  std::vector<PyObject*> before, now = mappings.keys_of(v);
  for (PyObject* k : now) if (mappings.has_own_hash(k)) refuse(v, "was changed and has keys that define __hash__");
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(v->real, &position, &key, &value)) before.push_back(key);
  std::vector<PyObject*> kept;
  for (PyObject* k : before) if (PyDict_Contains(m.items, k) == 1) kept.push_back(k);
  bool in_place = kept.size() <= now.size();
  for (size_t i = 0; in_place && i < kept.size(); ++i) in_place = PyObject_RichCompareBool(kept[i], now[i], Py_EQ) == 1;
  if (in_place || m.owner) {
    for (PyObject* k : before) if (PyDict_Contains(m.items, k) != 1) remove(k);
    for (PyObject* k : now) {
      Value* x = mappings.dict_get(v, k);
      if (!same(k, x)) store(k, x);
    }
    if (!in_place) throw frames::Skip{{.id = "order-of-attributes", .what = "the order of the attributes of an object changes", .stack = frame_stack.user_stack()}};
    return;
  }
  Effect e;
  e.kind = Effect::Kind::replace_dict;
  e.target = recipe(v);
  for (PyObject* k : now) { e.parts.push_back(recipe(mappings.value_of_key(k))); e.parts.push_back(recipe(mappings.dict_get(v, k))); }
  plan_.effects.push_back(std::move(e));
}

// Functions with a cache that were interpreted: the real ones are called, too, since what they remember shows.
void PlanBuilder::remembered_calls() {
  for (const auto& c : library.remembered_calls()) {
    if (!c.is_replayed) continue;
    std::vector<RecipeId> parts{constant(c.function->real)};
    if (c.raises) parts.insert(parts.begin(), constant(ending_named("call_in_vain")));
    for (Value* a : c.args) parts.push_back(recipe(a));
    PyObject* names = c.keywords.empty() ? nullptr : values.keep(PyTuple_New(static_cast<Py_ssize_t>(c.keywords.size())));
    for (size_t i = 0; i < c.keywords.size(); ++i) {
      PyTuple_SET_ITEM(names, static_cast<Py_ssize_t>(i), Py_NewRef(c.keywords[i].first));
      parts.push_back(recipe(c.keywords[i].second));
    }
    const RecipeId made = call(std::move(parts), names);
    plan_.recipes[made].acts = true;
    if (!c.result || c.result->kind != Kind::tensor || c.result->source) continue;
    if (unwrap_tensor(body<Tensor>(c.result).fake)._version() > 0) refuse(c.result, "is the cached result of a function and was written to");
    made_[c.result] = made;   // who gets it gets the one that is remembered
    remembered_.push_back(c.result);
  }
}

void PlanBuilder::add_effects() {
  for (const QueuedCall& q : effects.queued()) {
    // Through functions that look like the frames that were inlined, since loggers and warnings look at their callers.
    static PyObject* const make = [] { PyObject* m = PyImport_ImportModule("cutaway._places"); PyObject* f = m ? PyObject_GetAttrString(m, "stand_in") : nullptr; Py_XDECREF(m); return f; }();
    if (!make) throw std::runtime_error("cutaway._places cannot be imported");
    PyObject* inner = PyTuple_New(static_cast<Py_ssize_t>(q.places.size()) - 1);
    values.keep(inner);
    Effect e;
    e.kind = Effect::Kind::call;
    for (size_t i = 0; i < q.places.size(); ++i) {
      const auto& p = q.places[i];
      PyObject* f = PyObject_CallFunction(make, "OOOiO", p.code->co_filename, p.code->co_name, p.code->co_qualname, p.line, p.globals);
      if (!f) { PyErr_Clear(); throw std::runtime_error("a stand-in for a frame could not be made"); }
      if (i == 0) e.target = constant(values.keep(f));
      else PyTuple_SET_ITEM(inner, static_cast<Py_ssize_t>(i) - 1, f);
    }
    Recipe keywords;
    keywords.kind = Recipe::Kind::dict;
    for (auto& [name, x] : q.keywords) { keywords.parts.push_back(constant(name)); keywords.parts.push_back(recipe(x)); }
    const RecipeId function = recipe(q.function), args = sequence(Recipe::Kind::tuple, q.args);
    e.parts = {constant(inner), function, args, plan_.add(std::move(keywords))};
    e.before_node = static_cast<int32_t>(q.before_node);
    plan_.effects.push_back(std::move(e));
  }
  for (size_t i = 0; i < effects.changed().size(); ++i) {   // by index: making recipes may look at more, but changes nothing
    Value* v = effects.changed()[i];
    const size_t first = plan_.effects.size();
    switch (v->kind) {
      case Kind::list: case Kind::set: {
        if (v->kind == Kind::list && !body<Sequence>(v).is_loaded) {   // only appended to
          static PyObject* const append = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "append");
          for (Value* x : body<Sequence>(v).appended) {
            Effect e;
            e.kind = Effect::Kind::call;
            e.target = constant(append);
            const RecipeId list = recipe(v), item = recipe(x);
            e.parts = {list, item};
            plan_.effects.push_back(std::move(e));
          }
          break;
        }
        Effect e;
        e.kind = v->kind == Kind::list ? Effect::Kind::replace_list : Effect::Kind::replace_set;
        e.target = recipe(v);
        if (v->kind == Kind::list) for (Value* x : values.items(v)) e.parts.push_back(recipe(x));
        else for (PyObject* k : mappings.keys_of(v)) e.parts.push_back(recipe(mappings.value_of_key(k)));
        plan_.effects.push_back(std::move(e));
        break;
      }
      case Kind::dict: dict_effects(v); break;
      case Kind::cell: {
        Effect e;
        e.kind = Effect::Kind::store_cell;
        e.target = recipe(v);
        e.value = body<Cell>(v).contents ? recipe(body<Cell>(v).contents) : kNothing;
        plan_.effects.push_back(std::move(e));
        break;
      }
      case Kind::tensor: {
        Effect e;
        e.kind = Effect::Kind::set_attr;
        e.target = recipe(v);
        e.name = ObjectRef::borrow(names().grad);
        e.value = recipe(body<Tensor>(v).grad);
        plan_.effects.push_back(std::move(e));
        break;
      }
      case Kind::object: {
        std::unordered_set<PyObject*> seen;
        for (PyObject* name : body<Object>(v).written)
          for (auto& [n, x] : body<Object>(v).slots)
            if (PyUnicode_Compare(n, name) == 0 && seen.insert(n).second) {
              Effect e;
              e.kind = x ? Effect::Kind::set_attr : Effect::Kind::delete_attr;
              e.target = recipe(v);
              e.name = ObjectRef::borrow(name);
              if (x) e.value = recipe(x);
              plan_.effects.push_back(std::move(e));
            }
        break;
      }
      default: refuse(v, "was changed in a way that is not replayed");
    }
    for (size_t e = first; e < plan_.effects.size(); ++e) plan_.effects[e].before_node = static_cast<int32_t>(effects.changed_at(v));
  }
  for (const auto& [variable, value] : library.context_values()) {
    static PyObject* const set = PyObject_GetAttrString(reinterpret_cast<PyObject*>(known().context_var), "set");
    Effect e;
    e.kind = Effect::Kind::call;
    e.target = constant(set);
    e.parts = {recipe(variable), recipe(value)};
    plan_.effects.push_back(std::move(e));
  }
  // A list that is written to must not be another one that was read: then the order of reads and writes would show.
  for (Value* v : effects.changed()) {
    Value* target = v->kind == Kind::dict && body<Mapping>(v).owner ? body<Mapping>(v).owner : v;
    if (!target->source || target->source->kind == SourceKind::constant || target->kind == Kind::module) continue;
    guards::Guard g;
    g.source = target->source;
    g.kind = GuardKind::different_objects;
    for (Value* other : values.met_with_identity(target->type))
      if (other != target && other->source && other->source != target->source && other->kind != Kind::lazy) g.others.push_back(other->source);
    if (!g.others.empty()) guards.add(std::move(g));
  }
  for (Effect& e : late_) plan_.effects.push_back(std::move(e));
  mode_effects();
  switch_effects();
}

// Autograd lets nobody write to a leaf or to some views, and fakes do not know of which tensor an input is a view: a graph that writes is for
// tensors of the one kind, and the others raise at the user's line, where a block may handle it.
void PlanBuilder::guard_writes() {
  for (Value* v : tensors.inputs()) {
    const at::Tensor& real = unwrap_tensor(v->real);
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    if (!real.requires_grad() || fake.is_inference() || fake._version() == 0) continue;
    if (real.is_view()) throw frames::Skip{{.id = "write-to-a-view", .what = "the graph writes to an input that is a view and requires grad", .stack = frame_stack.user_stack()}};
    if (!v->source || v->source->kind == guards::SourceKind::constant) continue;
    for (const auto& [kind, is] : {std::pair(guards::SourceKind::tensor_is_leaf, real.is_leaf()), std::pair(guards::SourceKind::tensor_is_view, false)})
      (void)values.force(values.wrap(is ? Py_True : Py_False, guards.sources().of(v->source, kind)));
  }
}

bool PlanBuilder::compile_graph(const frames::Compile& compile) {
  auto& recorder = tensors.recorder();
  std::vector<c10::IValue> outputs;
  for (Value* v : outputs_) outputs.push_back(number_of(v) ? unwrap_symbolic(number_of(v)->symbolic) : c10::IValue(unwrap_tensor(body<Tensor>(v).fake)));
  for (Value* v : outputs_)
    for (Value* r : remembered_)
      if (!number_of(v) && unwrap_tensor(body<Tensor>(v).fake).unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == unwrap_tensor(body<Tensor>(r).fake).unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()) refuse(v, "is a view of the cached result of a function");
  const bool has_nodes = recorder.node_count() > 0;
  if (!has_nodes && outputs.empty()) return true;
  auto graph = recorder.finish(outputs);
  if (!graph.ok()) throw frames::Skip{{.id = "recording", .what = graph.error().what + (graph.error().because.empty() ? "" : ": " + graph.error().because), .stack = frame_stack.user_stack()}};
  frames::CapturedGraph captured;
  captured.graph = std::move(*graph);
  const auto& inputs = tensors.inputs();
  const auto& constants = recorder.constants();
  std::vector<const guards::Source*> sources;
  std::vector<ObjectRef> examples;
  size_t next_input = 0, next_constant = 0;
  for (const ir::Input& input : captured.graph.inputs) {
    if (input.kind == ir::InputKind::constant) {
      ObjectRef o = ObjectRef::steal(wrap_tensor(constants.at(next_constant++)));
      sources.push_back(guards.sources().constant(o.get(), "constant" + std::to_string(next_constant - 1)));
      examples.push_back(std::move(o));
    } else {
      Value* v = inputs.at(next_input++);
      sources.push_back(v->source ? v->source : guards.sources().constant(v->real));
      examples.push_back(ObjectRef::borrow(v->real));
    }
  }
  for (const size_t kept : ir::remove_unused_inputs(captured.graph)) {
    captured.input_sources.push_back(sources[kept]);
    captured.example_inputs.push_back(examples[kept]);
  }
  for (const at::Tensor& t : constants)
    if (trace::is_fake(t)) throw frames::Skip{{.id = "tensor-made-aside", .what = "a function created a tensor without the dispatcher", .stack = frame_stack.user_stack()}};
  plan_.output_count = outputs.size();
  plan_.restore_random = real_errors.first_random() != SIZE_MAX;   // one that raises may have drawn some of its numbers before (bernoulli)
  plan_.draws_random = plan_.restore_random;
  plan_.first_change = real_errors.first_change();
  plan_.catches = real_errors.runs_in_block();
  plan_.callables = leaves.take_callables();
  plan_.inputs = captured.input_sources;
  plan_.captured = std::make_shared<const ir::Graph>(captured.graph);
  plan_.op_count = ir::count_nodes(captured.graph);
  torch_calls.leave_transforms();
  tensors.end();   // the compiler must meet torch as the user left it
  const frames::WithoutOverriding overriding(plan_.runs_without_overriding);
  plan_.graph = compile(std::move(captured));
  return plan_.graph != nullptr;
}

}  // namespace cutaway::capture
