// Objects of Python's library that keep state behind C: context variables, dispatch by type, remembered results.
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"
#include "compiler/guards/remembered.h"

namespace cutaway::capture {

/// get, set and reset of a contextvars.ContextVar. Sets are replayed after the graph; a token is good for reset alone.
Value* Library::call_context_variable(Value* self, const std::string& name, const Args& args) {
  auto now = [&]() -> Value* {
    for (auto& [variable, value] : context_values_) if (variable == self || variable->real == self->real) return value;
    PyObject* value = nullptr;
    if (PyContextVar_Get(self->real, nullptr, &value) < 0) { PyErr_Clear(); return nullptr; }
    return value ? values.wrap(values.keep(value), guards.sources().of(self->source, SourceKind::context_value)) : nullptr;
  };
  if (name == "get") {
    if (Value* value = now()) return value;
    stop("context-variable", "a context variable without a value is read", "set it, or give it a default, outside of the compiled function");
  }
  if (name == "set" && args.count == 1) {
    Value* before = now();
    if (!before) stop("context-variable", "a context variable without a value is set", "set it, or give it a default, outside of the compiled function");
    Value* token = values.new_value(Kind::opaque, known().context_token);
    context_tokens_.push_back({token, self, before, false});
    for (auto& [variable, value] : context_values_) if (variable->real == self->real) { value = args[0]; return token; }
    context_values_.emplace_back(self, args[0]);
    return token;
  }
  if (name == "reset" && args.count == 1) {
    for (auto& t : context_tokens_)
      if (t.token == values.force(args[0])) {
        if (t.variable->real != self->real) break;
        if (t.is_used) return exceptions.raise(PyExc_RuntimeError, "Token has already been used once");   // with other words in CPython: the frame runs as it is
        t.is_used = true;
        for (auto& [variable, value] : context_values_) if (variable->real == self->real) value = t.before;
        return values.none();
      }
    stop("context-variable", "a context variable is reset with a token from outside", "reset it outside of the compiled function");
  }
  stop("context-variable", "ContextVar." + name + "() is called");
}

namespace {
/// einops looks for what serves a class of tensors when it meets the first one, among the subclasses of a class and what is imported, and keeps it in a table. That happens now, as
/// it would at this call: what is captured then is the way that every later call takes.
void meet_first_tensor(PyObject* function, PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("get_backend");
  if (type != known().tensor || reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_name != name) return;
  PyObject* module = PyFunction_GET_MODULE(function);
  if (!module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "einops._backends") != 0) return;
  PyObject* table = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "_type2backend");
  if (!table || !PyDict_Check(table) || PyDict_GetItemWithError(table, reinterpret_cast<PyObject*>(type))) { PyErr_Clear(); return; }
  PyObject* tensor = wrap_tensor(at::Tensor(at::detail::empty_cpu({0}, at::kFloat)));   // past the recorder
  PyObject* found = PyObject_CallOneArg(function, tensor);
  if (!found) PyErr_Clear();
  Py_XDECREF(found);
  Py_XDECREF(tensor);
}
}  // namespace

/// functools.singledispatch: which function serves a class follows from the registry, which is guarded; typing's and abc's own code answers.
bool Library::call_dispatch(Value* f, const Args& args, Value** result) {
  if (args.count == 1 && !args.keyword_count && args[0]->kind == Kind::tensor) meet_first_tensor(f->real, args[0]->type);
  static PyObject* const dispatch_code = [] {
    PyObject* m = PyImport_ImportModule("functools");
    PyObject* outer = m ? PyObject_GetAttrString(m, "singledispatch") : nullptr;
    PyObject* consts = outer ? reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(outer))->co_consts : nullptr;
    PyObject* found = nullptr;
    for (Py_ssize_t i = 0; consts && i < PyTuple_GET_SIZE(consts); ++i) {
      PyObject* c = PyTuple_GET_ITEM(consts, i);
      if (PyCode_Check(c) && PyUnicode_CompareWithASCIIString(reinterpret_cast<PyCodeObject*>(c)->co_name, "dispatch") == 0) found = c;
    }
    Py_XDECREF(m);
    PyErr_Clear();
    return found;
  }();
  if (!dispatch_code || PyFunction_GET_CODE(f->real) != dispatch_code || args.count != 1 || args.keyword_count || values.kind(args[0]) != Kind::klass || classes.is_made_class(args[0]->real)) return false;
  Function& fn = values.function(f);
  Value* registry = nullptr;
  for (size_t i = 0; i < fn.closure.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(PyCode_GetFreevars(fn.code), static_cast<Py_ssize_t>(i)), "registry") == 0) registry = values.force(values.cell_contents(fn.closure[i]));
  if (!registry || registry->kind != Kind::dict || !registry->real || registry->is_changed) return false;
  mappings.dict_load(registry);
  PyObject* chosen = PyObject_CallOneArg(f->real, args[0]->real);
  if (!chosen) { PyErr_Clear(); return false; }
  values.keep(chosen);
  for (PyObject* key : mappings.keys_of(registry))
    if (Value* v = mappings.dict_get(registry, key); v->real == chosen) { *result = v; return true; }
  return false;
}

namespace {
bool is_of_torch(PyObject* function) {
  PyObject* module = PyFunction_Check(function) ? PyFunction_GET_MODULE(function) : nullptr;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (!text) PyErr_Clear();
  return text && (std::string_view(text) == "torch" || std::string_view(text).starts_with("torch."));
}
/// A number, text or a tuple of them: what it is says everything.
bool is_plain_constant(PyObject* o, bool inside = false) {
  if (PyTuple_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) if (!is_plain_constant(PyTuple_GET_ITEM(o, i), true)) return false;
    return true;
  }
  return kind_of_type(Py_TYPE(o), o) == Kind::constant || PyType_Check(o) || (!inside && is_tensor_object(o));
}
/// Libraries whose caches compute from their arguments alone: what they remember may be made ahead.
bool is_known_to_compute(PyObject* function) {
  PyObject* module = PyFunction_Check(function) ? PyFunction_GET_MODULE(function) : nullptr;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (!text) PyErr_Clear();
  return text && (std::string_view(text) == "einops" || std::string_view(text).starts_with("einops."));
}
}  // namespace

/// The call as a key of the function's cache, where its arguments are constants or objects that are known by their identity; see guard_key_in_cache. Null: not so.
PyObject* Library::key_in_cache(Value* f, const Args& args) {
  if (!guards::knows_caches()) return nullptr;
  const auto known_object = [&](Value* v) -> PyObject* {
    if (PyObject* c = values.as_constant(v)) {
      return is_identity_number(c) || numbers.holds_made_number(c) || classes.holds_made_class(c) ? nullptr : c;
    }
    const Kind k = values.kind(v);
    const bool by_identity = k == Kind::function || k == Kind::module || k == Kind::builtin || k == Kind::klass || (k == Kind::object && !plain_of(v));
    return by_identity && v->real && !classes.is_made_class(v->real) ? v->real : nullptr;
  };
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) {
    PyObject* o = known_object(args[i]);
    if (!o) return nullptr;
    PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), Py_NewRef(o));
  }
  std::vector<std::pair<PyObject*, PyObject*>> keywords;
  for (size_t i = 0; i < args.keyword_count; ++i) {
    PyObject* o = known_object(args.keywords[i].second);
    if (!o) return nullptr;
    keywords.emplace_back(args.keywords[i].first, o);
  }
  PyObject* key = guards::key_of_call(f->real, positional, keywords);
  return key ? values.keep(key) : nullptr;
}

/// The key that was asked for is that of this call alone.
void Library::guard_key_in_cache(const Args& args) {
  const auto look = [&](Value* v) {
    if (PyObject* c = values.as_constant(v)) {
      if (frames::SizeLog* log = frames::size_log()) log->used(c);
    } else if (v->source && v->source->kind != SourceKind::constant) {
      guards.add(v->source, GuardKind::id, v->real);
    }
  };
  for (size_t i = 0; i < args.count; ++i) look(args[i]);
  for (size_t i = 0; i < args.keyword_count; ++i) look(args.keywords[i].second);
}

/// The result that the cache has, as a value from outside: what is read of it is guarded, and so is that it is there. Null: there is none.
Value* Library::take_remembered(Value* f, PyObject* key, const Args& args) {
  PyObject* there = key ? guards::remembered(f->real, key) : nullptr;
  if (!there) return nullptr;
  guard_key_in_cache(args);
  SourceRef source = guards.sources().of(f->source ? f->source : guards.sources().constant(f->real), SourceKind::remembered, key);
  Value* r = values.wrap(there, source);
  guards.add({.source = source, .kind = GuardKind::exists});
  remembered_calls_.push_back({f, {args.positional, args.positional + args.count}, {args.keywords, args.keywords + args.keyword_count}, r, cache_depth_ == 0});   // the cache counts how often it is asked
  return r;
}

/// Calls the function ahead of the program, which will do so itself: here by the plan, or by Python where the graph ends before.
bool Library::remember_ahead(Value* f, const Args& args) {
  guard_key_in_cache(args);
  if (!guards::has_room(f->real)) return false;   // what it pushes out might be asked for before
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) {
    PyObject* c = values.as_constant(args[i]);
    PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), Py_NewRef(c ? c : args[i]->real));
  }
  PyObject* keywords = values.keep(PyDict_New());
  for (size_t i = 0; i < args.keyword_count; ++i) {
    PyObject* c = values.as_constant(args.keywords[i].second);
    PyDict_SetItem(keywords, args.keywords[i].first, c ? c : args.keywords[i].second->real);
  }
  PyObject* made = PyObject_Call(f->real, positional, keywords);
  if (!made) { PyErr_Clear(); return false; }
  values.keep(made);
  guards::counts_as_miss(f->real);
  return true;
}

Value* Library::call_lru_cache(Value* f, const Args& args) {
  // What the function computes is interpreted. The real one is called when the plan runs, so that its cache knows what it would know, and
  // so that a tensor which leaves the graph is the one that it remembers.
  PyObject* wrapped = PyObject_GetAttr(f->real, names().__wrapped__);
  if (!wrapped) return exceptions.raise_python();
  values.keep(wrapped);
  if (args.count && values.force(args[0])->real && PyType_IsSubtype(args[0]->type, known().logger)) return effects.queue_call(f, args);
  // What has no hash: it raises before it calls the function. What has one of the program's own: it may give what it remembers of another argument.
  const std::function<bool(Value*)> is_no_plain_key = [&](Value* v) {
    values.force(v);
    if (v->kind == Kind::tuple && v->type == &PyTuple_Type && !values.as_constant(v)) return std::ranges::any_of(values.items(v), is_no_plain_key);
    if (v->kind == Kind::object && !plain_of(v)) return attributes.own_method(v->type, names().__hash__) || attributes.own_method(v->type, names().__eq__);
    return v->kind == Kind::list || v->kind == Kind::dict || v->kind == Kind::slice || (v->kind == Kind::set && v->type == &PySet_Type);
  };
  for (size_t i = 0; i < args.count; ++i)
    if (is_no_plain_key(args[i])) stop("lru-cache", values.describe(f) + " caches its results, and is called with " + values.describe(args[i]));
  for (size_t i = 0; i < args.keyword_count; ++i)
    if (is_no_plain_key(args.keywords[i].second)) stop("lru-cache", values.describe(f) + " caches its results, and is called with " + values.describe(args.keywords[i].second));
  // What it has made before, and what has an identity or content of its own, is taken as it is.
  PyObject* key = key_in_cache(f, args);
  if (PyObject* there = key ? guards::remembered(f->real, key) : nullptr; there && !is_plain_constant(there)) return take_remembered(f, key, args);
  if (key && !guards::remembered(f->real, key) && is_known_to_compute(wrapped) && remember_ahead(f, args))
    if (Value* r = take_remembered(f, key, args)) return r;
  // It is called before what the captured code changed is written back, and may look at that.
  if (!is_of_torch(wrapped))
    for (Value* v : effects.changed())
      if (v->real) stop("lru-cache", values.describe(f) + " caches its results, and is called after something that it may look at was changed");
  bool is_known = true;
  for (size_t i = 0; i < args.count; ++i) is_known = is_known && values.as_constant(args[i]);
  for (size_t i = 0; i < args.keyword_count; ++i) is_known = is_known && values.as_constant(args.keywords[i].second);
  if (is_known)
    for (const RememberedCall& c : remembered_calls_) {
      if (c.raises || c.function->real != f->real || c.args.size() != args.count || c.keywords.size() != args.keyword_count) continue;
      bool same = true;
      const auto equals = [&](Value* a, Value* b) { PyObject *x = values.as_constant(a), *y = values.as_constant(b); return x && y && Py_TYPE(x) == Py_TYPE(y) && PyObject_RichCompareBool(x, y, Py_EQ) == 1; };
      for (size_t i = 0; i < args.count; ++i) same = same && equals(c.args[i], args[i]);
      for (size_t i = 0; i < args.keyword_count; ++i) same = same && PyUnicode_Compare(c.keywords[i].first, args.keywords[i].first) == 0 && equals(c.keywords[i].second, args.keywords[i].second);
      if (!same) continue;
      Value* found = c.result;
      if (!cache_depth_ && !is_of_torch(wrapped)) remembered_calls_.push_back({f, c.args, c.keywords, found, true});   // the cache counts how often it is asked
      return found;
    }
  const uint64_t step = interpreter.steps();
  const size_t changes = effects.changed_count(), random = real_errors.first_random(), guard_count = guards.count(), nodes = tensors.node_count();
  ++cache_depth_;
  struct Leave { int& n; ~Leave() { --n; } } leave{cache_depth_};
  Value* r = calls.call(values.wrap_constant_object(wrapped), args);
  if (effects.changed_count() != changes) stop("lru-cache", values.describe(f) + " caches its results, and does more than compute them");
  if (!r) {   // its cache counts that, too
    if (is_known && tensors.node_count() == nodes) remembered_calls_.push_back({f, {args.positional, args.positional + args.count}, {args.keywords, args.keywords + args.keyword_count}, nullptr, cache_depth_ == 1, true});
    return nullptr;
  }
  const bool has_identity = !values.as_constant(r) && values.kind(r) != Kind::function && values.kind(r) != Kind::module && values.kind(r) != Kind::builtin && !(r->real && r->source);
  bool reads = false;   // what reads data may have been another one when it was remembered
  for (size_t i = guard_count; i < guards.count(); ++i) {
    const GuardKind k = guards.at(i).kind;
    reads |= k == GuardKind::const_eq || k == GuardKind::tensor || k == GuardKind::length || k == GuardKind::dict_keys || k == GuardKind::contains || k == GuardKind::lacks;
  }
  if (has_identity && (reads || values.kind(r) != Kind::tensor || body<Tensor>(r).input >= 0 || random != real_errors.first_random() || !is_known))
  {
    // It has no effects, and made nothing in the graph: it may be called as the program calls it here.
    const bool computes = key && tensors.node_count() == nodes && random == real_errors.first_random();
    if (computes && (guards::remembered(f->real, key) || remember_ahead(f, args))) {
      interpreter.count_from(step);   // as the next attempt will count, which finds it there
      --cache_depth_;   // the call is the program's own
      struct Enter { int& n; ~Enter() { ++n; } } enter{cache_depth_};
      if (Value* taken = take_remembered(f, key, args)) return taken;
    }
    stop("lru-cache", values.describe(f) + " caches its results, and returns " + values.describe(r));
  }
  if (reads && is_known && !args.keyword_count && tensors.node_count() == nodes && values.kind(r) == Kind::constant) {
    // It has no effects, so it may be called as the program calls it here: then its cache says what the program gets from now on.
    PyObject* given = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
    for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(given, static_cast<Py_ssize_t>(i), Py_NewRef(values.as_constant(args[i])));
    PyObject* now = PyObject_Call(f->real, given, nullptr);
    if (!now) { PyErr_Clear(); stop("lru-cache", values.describe(f) + " caches its results, and raises an exception"); }
    values.keep(now);
    if (now != r->real && !(Py_TYPE(now) == Py_TYPE(r->real) && !is_user_class(Py_TYPE(now)) && PyObject_RichCompareBool(now, r->real, Py_EQ) == 1)) {
      if (kind_of_type(Py_TYPE(now), now) != Kind::constant) stop("lru-cache", values.describe(f) + " has cached a result that differs from what it would return now");
      r = values.constant(now);
    }
  }
  if (is_known) remembered_calls_.push_back({f, {args.positional, args.positional + args.count}, {args.keywords, args.keywords + args.keyword_count}, r, cache_depth_ == 1});
  return r;
}

namespace {
// A number that stands for the identity of something that the trace made: equal to itself, and good for nothing else.
PyTypeObject* identity_type() {
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){}", "Identity", &PyLong_Type));
  return type;
}
}  // namespace

bool Library::is_identity_number(PyObject* o) {
  if (Py_TYPE(o) == identity_type()) return true;
  if (PyTuple_CheckExact(o))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) if (is_identity_number(PyTuple_GET_ITEM(o, i))) return true;
  return false;
}

Value* Library::identity_number(void* of) {
  Value*& v = identities_[of];
  if (v) return v;
  PyObject* address = values.keep(PyLong_FromVoidPtr(of));
  v = values.constant_steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(identity_type()), address));
  v->type = &PyLong_Type;
  return v;
}

Value* Library::number_without_value(PyObject* number) {
  Value* v = values.constant_steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(identity_type()), number));
  v->type = &PyLong_Type;
  return v;
}

/// In a local variable, on a stack or in a cell of a frame that runs: nothing can have freed it.
bool Library::is_held(Value* v) {
  values.force(v);
  if (v->real) return true;
  for (Frame* f = frame_stack.innermost(); f; f = f->caller) {
    if (values.stands_for_c(f->function)) continue;
    for (const auto* slots : {&f->locals, &f->stack})
      for (Value* s : *slots) {
        if (s == v) return true;
        if (s && s->kind == Kind::cell && body<Cell>(s).is_loaded && body<Cell>(s).contents == v) return true;
      }
  }
  return false;
}

/// What `await` asks: a coroutine itself, else what __await__ gives.
Value* Library::awaitable(Value* v) {
  values.force(v);
  if (v->kind == Kind::generator && (v->type == &PyCoro_Type || (body<Generator>(v).frame->code->object()->co_flags & CO_ITERABLE_COROUTINE))) return v;   // the latter by types.coroutine
  if (v->kind == Kind::opaque) stop("opaque-object", values.describe(v) + " is awaited, which capture does not know");
  Value* own = attributes.special(v, values.keep(PyUnicode_InternFromString("__await__")));
  if (!own) return exceptions.raised() ? nullptr : exceptions.raise(PyExc_TypeError, std::string("object ") + v->type->tp_name + " can't be used in 'await' expression");
  Value* it = calls.call(own, {});
  if (!it) return nullptr;
  if (values.kind(it) == Kind::generator && it->type == &PyCoro_Type) return exceptions.raise(PyExc_TypeError, "__await__() returned a coroutine");
  return it;
}

/// What CPython calls a function in the errors of a call with stars: "module.name()".
std::string Library::callable_text(Value* callable) {
  values.force(callable);
  if (callable->kind == Kind::method) {
    Value* f = values.force(body<Method>(callable).function);
    if (f->kind != Kind::function) stop("unknown-callable", "a method written in C is called with arguments that it does not take");   // its name depends on what it is bound to
    return callable_text(f);
  }
  if (callable->kind != Kind::function && callable->kind != Kind::klass && callable->kind != Kind::builtin) stop("unknown-callable", "something that is not a function is called with arguments that it does not take");
  Value *qualname = attributes.getattr(callable, names().__qualname__), *module = qualname ? attributes.getattr(callable, names().__module__) : nullptr;
  PyObject *q = qualname ? values.as_constant(qualname) : nullptr, *m = module ? values.as_constant(module) : nullptr;
  if (!q || !PyUnicode_Check(q)) stop("unknown-callable", "something that is not a function is called with arguments that it does not take");
  const std::string text = PyUnicode_AsUTF8(q);
  return (m && PyUnicode_Check(m) && PyUnicode_CompareWithASCIIString(m, "builtins") != 0 ? std::string(PyUnicode_AsUTF8(m)) + "." : "") + text + "()";
}

/// The words that CPython has for `f(*3)` and `[*3]`.
void Library::explain_not_iterable(Value* v, Value* callable) {
  if (!exceptions.raised_is(PyExc_TypeError) || values.kind(v) == Kind::opaque || v->type->tp_iter || (v->type->tp_as_sequence && v->type->tp_as_sequence->sq_item)) return;
  exceptions.take_raised();
  if (!callable) exceptions.raise(PyExc_TypeError, std::string("Value after * must be an iterable, not ") + v->type->tp_name);
  else exceptions.raise(PyExc_TypeError, callable_text(callable) + " argument after * must be an iterable, not " + v->type->tp_name);
}

/// `{**3}` and `f(**3)`: what has no keys is no mapping, even where it can be iterated.
bool Library::explain_not_mapping(Value* v, Value* callable) {
  values.force(v);
  if (v->kind == Kind::dict || v->kind == Kind::opaque) return false;
  if (v->kind == Kind::object) {
    if (attributes.has_c_base(v) || !has_generic_getattr(v->type) || attributes.lookup_type(v->type, names().__getattr__) || attributes.lookup_type(v->type, names().keys)) return false;
    if (Value* own = attributes.instance_dict(v); own && mappings.dict_get(own, names().keys)) return false;
  }
  if (callable) exceptions.raise(PyExc_TypeError, callable_text(callable) + " argument after ** must be a mapping, not " + v->type->tp_name);
  else exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not a mapping");
  return true;
}

}  // namespace cutaway::capture
