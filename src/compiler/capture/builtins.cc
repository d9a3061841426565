// Functions and types of C that the interpreter knows: builtins, slots and methods of Python's own types, and pure functions on constants.
#include <cstdint>
#include <string_view>

#include "compiler/capture/names.h"
#include "compiler/capture/trace.h"
#include "compiler/capture/types.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {
namespace {

using Handler = Value* (*)(Trace&, const Args&);

bool wrong_count(Trace& t, const char* name, const Args& a, size_t least, size_t most) {
  if (a.count >= least && a.count <= most) return false;
  t.raise(PyExc_TypeError, std::string(name) + " expected " + (a.count < least ? "at least " : "at most ") + std::to_string(a.count < least ? least : most) + " arguments, got " + std::to_string(a.count));
  return true;
}
Value* keyword(const Args& a, const char* name) {
  for (size_t i = 0; i < a.keyword_count; ++i)
    if (PyUnicode_CompareWithASCIIString(a.keywords[i].first, name) == 0) return a.keywords[i].second;
  return nullptr;
}

Value* do_isinstance(Trace& t, const Args& a) {
  bool r = false;
  if (wrong_count(t, "isinstance", a, 2, 2) || !t.isinstance(a[0], a[1], &r)) return nullptr;
  return t.boolean(r);
}
Value* do_issubclass(Trace& t, const Args& a) {
  bool r = false;
  if (wrong_count(t, "issubclass", a, 2, 2) || !t.issubclass(a[0], a[1], &r)) return nullptr;
  return t.boolean(r);
}
Value* do_len(Trace& t, const Args& a) { return wrong_count(t, "len", a, 1, 1) ? nullptr : t.length(a[0]); }
Value* do_iter(Trace& t, const Args& a) {
  if (a.count == 2) t.stop("iter-with-sentinel", "iter() is called with a sentinel");
  return t.iter(a[0]);
}
Value* do_next(Trace& t, const Args& a) {
  bool done = false;
  Value* v = t.next(a[0], &done);
  if (!done) return v;
  if (a.count > 1) return a[1];
  return t.raise(t.make_exception(PyExc_StopIteration, {}));
}
PyObject* name_of(Trace& t, Value* v) {
  PyObject* n = t.as_constant(v);
  if (!n || !PyUnicode_Check(n)) { t.raise(PyExc_TypeError, "attribute name must be string"); return nullptr; }
  PyObject* interned = Py_NewRef(n);
  PyUnicode_InternInPlace(&interned);
  return t.keep(interned);
}
Value* do_getattr(Trace& t, const Args& a) {
  if (wrong_count(t, "getattr", a, 2, 3)) return nullptr;
  PyObject* n = name_of(t, a[1]);
  if (!n) return nullptr;
  Value* v = t.getattr(a[0], n);
  if (!v && a.count == 3 && t.raised_is(PyExc_AttributeError)) { t.take_raised(); return a[2]; }
  return v;
}
Value* do_hasattr(Trace& t, const Args& a) {
  PyObject* n = name_of(t, a[1]);
  if (!n) return nullptr;
  Value* v = t.getattr(a[0], n);
  if (v) return t.boolean(true);
  if (!t.raised_is(PyExc_AttributeError)) return nullptr;
  t.take_raised();
  return t.boolean(false);
}
Value* do_setattr(Trace& t, const Args& a) {
  PyObject* n = name_of(t, a[1]);
  return n && t.setattr(a[0], n, a[2]) ? t.none() : nullptr;
}
Value* do_delattr(Trace& t, const Args& a) {
  PyObject* n = name_of(t, a[1]);
  return n && t.delattr(a[0], n) ? t.none() : nullptr;
}
Value* do_callable(Trace& t, const Args& a) {
  switch (t.kind(a[0])) {
    case Kind::function: case Kind::method: case Kind::builtin: case Kind::klass: case Kind::partial: return t.boolean(true);
    case Kind::opaque: return t.boolean(a[0]->type->tp_call != nullptr);
    default: return t.boolean(t.lookup_type(a[0]->type, names().__call__) != nullptr);
  }
}
Value* do_id(Trace& t, const Args& a) {
  Value* v = t.force(a[0]);
  if (!v->real || v->is_changed) t.stop("id-of-a-new-object", "id() of an object that the captured code made");
  t.guard(v->source, GuardKind::id, v->real);
  return t.constant_steal(PyLong_FromVoidPtr(v->real));
}
Value* do_repr(Trace& t, const Args& a) { return t.repr(a[0]); }
Value* do_abs(Trace& t, const Args& a) {
  Value* v = t.force(a[0]);
  if (v->kind == Kind::constant) return t.constant_steal(PyNumber_Absolute(v->real));
  if (v->kind == Kind::tensor) return t.call_tensor_method(v, t.keep(PyUnicode_InternFromString("abs")), {v});
  Value* r = t.dunder(v, "__abs__", nullptr);
  return r || t.raised() ? r : t.raise(PyExc_TypeError, std::string("bad operand type for abs(): '") + v->type->tp_name + "'");
}
Value* extreme(Trace& t, const Args& a, int op, const char* name) {
  std::vector<Value*> all;
  if (a.count == 1) { if (!t.unpack(a[0], &all)) return nullptr; }
  else all.assign(a.positional, a.positional + a.count);
  Value* key = keyword(a, "key");
  if (all.empty()) {
    if (Value* d = keyword(a, "default")) return d;
    return t.raise(PyExc_ValueError, std::string(name) + "() arg is an empty sequence");
  }
  auto key_for = [&](Value* v) { return key && !t.is_constant(key, Py_None) ? t.call(key, {v}) : v; };
  Value *best = all[0], *best_key = key_for(all[0]);
  if (!best_key) return nullptr;
  for (size_t i = 1; i < all.size(); ++i) {
    Value* k = key_for(all[i]);
    Value* better = k ? t.compare(op, k, best_key) : nullptr;
    if (!better) return nullptr;
    const int truth = t.truth(better);
    if (truth < 0) return nullptr;
    if (truth) { best = all[i]; best_key = k; }
  }
  return best;
}
Value* do_min(Trace& t, const Args& a) { return extreme(t, a, Py_LT, "min"); }
Value* do_max(Trace& t, const Args& a) { return extreme(t, a, Py_GT, "max"); }
Value* do_sum(Trace& t, const Args& a) {
  Value* it = t.iter(a[0]);
  if (!it) return nullptr;
  Value* total = a.count > 1 ? a[1] : keyword(a, "start") ? keyword(a, "start") : t.integer(0);
  for (;;) {
    bool done = false;
    Value* v = t.next(it, &done);
    if (done) return total;
    if (!v || !(total = t.binary(0, total, v))) return nullptr;
  }
}
Value* any_all(Trace& t, const Args& a, bool any) {
  Value* it = t.iter(a[0]);
  if (!it) return nullptr;
  for (;;) {
    bool done = false;
    Value* v = t.next(it, &done);
    if (done) return t.boolean(!any);
    if (!v) return nullptr;
    const int truth = t.truth(v);
    if (truth < 0) return nullptr;
    if ((truth == 1) == any) return t.boolean(any);
  }
}
Value* do_any(Trace& t, const Args& a) { return any_all(t, a, true); }
Value* do_all(Trace& t, const Args& a) { return any_all(t, a, false); }
Value* do_sorted(Trace& t, const Args& a) {
  std::vector<Value*> all;
  if (!t.unpack(a[0], &all)) return nullptr;
  bool reverse = false;
  if (Value* r = keyword(a, "reverse")) { const int truth = t.truth(r); if (truth < 0) return nullptr; reverse = truth; }
  if (!t.sort_values(all, keyword(a, "key"), reverse)) return nullptr;
  return t.make_list(std::move(all));
}
Value* do_print(Trace& t, const Args&) { t.stop("print", "print() is called", "print outside of the compiled function, or list it as one that may be reordered"); }
Value* do_vars(Trace& t, const Args& a) {
  if (a.count == 0) t.stop("locals", "vars() without an argument is called");
  return t.getattr(a[0], names().__dict__);
}
Value* do_format(Trace& t, const Args& a) { return t.format(a[0], a.count > 1 ? a[1] : nullptr); }
Value* do_hash(Trace& t, const Args& a) {
  if (PyObject* c = t.as_constant(a[0])) { const Py_hash_t h = PyObject_Hash(c); return h == -1 ? t.raise_python() : t.integer(h); }
  if (Value* own = t.dunder(a[0], "__hash__", nullptr); own || t.raised()) return own;
  t.stop("hash", "hash() of " + t.describe(a[0]));
}
Value* do_round(Trace& t, const Args& a) {
  Value* v = t.force(a[0]);
  if (v->kind == Kind::tensor) return t.call_tensor_method(v, t.keep(PyUnicode_InternFromString("round")), a);
  PyObject* c = t.as_constant(v);
  Value* digits = a.count > 1 ? a[1] : keyword(a, "ndigits");
  if (!c) t.stop("round", "round() of " + t.describe(v));
  PyObject* d = digits ? t.as_constant(digits) : nullptr;
  return t.constant_steal(d ? PyObject_CallMethodObjArgs(c, names().__round__, d, nullptr) : PyObject_CallMethodNoArgs(c, names().__round__));
}
Value* do_pow(Trace& t, const Args& a) {
  if (a.count == 2) return t.binary(8, a[0], a[1]);
  PyObject *x = t.as_constant(a[0]), *y = t.as_constant(a[1]), *z = t.as_constant(a[2]);
  if (!x || !y || !z) t.stop("pow", "pow() with three arguments");
  return t.constant_steal(PyNumber_Power(x, y, z));
}
Value* do_divmod(Trace& t, const Args& a) {
  PyObject *x = t.as_constant(a[0]), *y = t.as_constant(a[1]);
  if (x && y) { PyObject* r = PyNumber_Divmod(x, y); return r ? t.wrap_constant_object(t.keep(r)) : t.raise_python(); }
  Value* q = t.binary(2, a[0], a[1]);
  Value* r = q ? t.binary(6, a[0], a[1]) : nullptr;
  return r ? t.make_tuple({q, r}) : nullptr;
}

const std::unordered_map<std::string_view, Handler>& builtin_handlers() {
  static const std::unordered_map<std::string_view, Handler> table = {
      {"isinstance", do_isinstance}, {"issubclass", do_issubclass}, {"len", do_len}, {"iter", do_iter}, {"next", do_next}, {"getattr", do_getattr}, {"hasattr", do_hasattr},
      {"setattr", do_setattr}, {"delattr", do_delattr}, {"callable", do_callable}, {"id", do_id}, {"repr", do_repr}, {"abs", do_abs}, {"min", do_min}, {"max", do_max}, {"sum", do_sum},
      {"any", do_any}, {"all", do_all}, {"sorted", do_sorted}, {"print", do_print}, {"vars", do_vars}, {"format", do_format}, {"hash", do_hash}, {"round", do_round}, {"pow", do_pow},
      {"divmod", do_divmod}};
  return table;
}

// C functions that depend on their arguments alone and change nothing.
bool is_pure(std::string_view module, std::string_view name) {
  if (module == "math" || module == "cmath" || module == "_bisect" || module == "_heapq" || module == "_struct" || module == "binascii" || module == "unicodedata" || module == "_json" || module == "_sre") return true;
  if (module == "builtins") return name == "ord" || name == "chr" || name == "bin" || name == "hex" || name == "oct" || name == "ascii" || name == "divmod";
  if (module == "sys") return name == "getrecursionlimit" || name == "intern" || name == "getsizeof";
  if (module == "posix" || module == "nt") return name == "fspath";
  if (module == "_operator") return true;
  return false;
}

struct OperatorRow { std::string_view name; int op; };
constexpr OperatorRow kOperators[] = {{"add", 0}, {"and_", 1}, {"floordiv", 2}, {"lshift", 3}, {"matmul", 4}, {"mul", 5}, {"mod", 6}, {"or_", 7}, {"pow", 8}, {"rshift", 9}, {"sub", 10},
                                      {"truediv", 11}, {"xor", 12}, {"iadd", 13}, {"iand", 14}, {"ifloordiv", 15}, {"ilshift", 16}, {"imatmul", 17}, {"imul", 18}, {"imod", 19}, {"ior", 20},
                                      {"ipow", 21}, {"irshift", 22}, {"isub", 23}, {"itruediv", 24}, {"ixor", 25}, {"concat", 0}, {"iconcat", 13}};
constexpr OperatorRow kComparisons[] = {{"lt", Py_LT}, {"le", Py_LE}, {"eq", Py_EQ}, {"ne", Py_NE}, {"gt", Py_GT}, {"ge", Py_GE}};

std::string text_of(PyObject* o, PyObject* name) {
  PyObject* a = PyObject_GetAttr(o, name);
  std::string s = a && PyUnicode_Check(a) ? PyUnicode_AsUTF8(a) : "";
  Py_XDECREF(a);
  PyErr_Clear();
  return s;
}

}  // namespace

Value* Trace::call_operator(std::string_view name, const Args& args) {
  if (args.count == 2) {
    for (const auto& row : kOperators) if (row.name == name) return binary(row.op, args[0], args[1]);
    for (const auto& row : kComparisons) if (row.name == name) return compare(row.op, args[0], args[1]);
    if (name == "getitem") return subscript(args[0], args[1]);
    if (name == "contains") { const int r = contains(args[0], args[1]); return r < 0 ? nullptr : boolean(r); }
    if (name == "is_") return boolean(same_identity(args[0], args[1]));
    if (name == "is_not") return boolean(!same_identity(args[0], args[1]));
    if (name == "delitem") return delete_subscript(args[0], args[1]) ? none_ : nullptr;
  }
  if (args.count == 3 && name == "setitem") return store_subscript(args[0], args[1], args[2]) ? none_ : nullptr;
  if (args.count == 1) {
    if (name == "neg") return unary('-', args[0]);
    if (name == "pos") return unary('+', args[0]);
    if (name == "invert" || name == "inv") return unary('~', args[0]);
    if (name == "abs") return do_abs(*this, args);
    if (name == "not_") { const int t = truth(args[0]); return t < 0 ? nullptr : boolean(!t); }
    if (name == "truth") { const int t = truth(args[0]); return t < 0 ? nullptr : boolean(t); }
    if (name == "index") { Py_ssize_t n = 0; return index_number(args[0], &n) ? integer(n) : nullptr; }
    if (name == "length_hint") return length(args[0]);
  }
  stop("unknown-c-function", "operator." + std::string(name) + " is called in a way that is not captured");
}

Value* Trace::call_pure(PyObject* f, const Args& args) {
  PyObject* tuple = keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) {
    PyObject* p = to_plain(args[i]);
    if (!p) {
      const Kind k = kind(args[i]);
      if (k == Kind::tensor) stop("tensor-in-python-function", describe(constant_kind(f)) + " is called with a tensor", "use the torch function of that name");
      if (k == Kind::iterator || k == Kind::generator || k == Kind::view) {
        std::vector<Value*> all;
        if (!unpack(args[i], &all)) return nullptr;
        p = to_plain(make_list(std::move(all)));
      }
      if (k == Kind::object) {
        if (Value* n = dunder(args[i], "__float__", nullptr); n || raised_) { if (!n) return nullptr; p = to_plain(n); }
        else if (Value* m = dunder(args[i], "__index__", nullptr); m || raised_) { if (!m) return nullptr; p = to_plain(m); }
      }
      if (!p) stop("unknown-c-function", describe(constant_kind(f)) + " is called with " + describe(args[i]));
    }
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(p));
  }
  PyObject* keywords = nullptr;
  if (args.keyword_count) {
    keywords = keep(PyDict_New());
    for (size_t i = 0; i < args.keyword_count; ++i) {
      PyObject* p = to_plain(args.keywords[i].second);
      if (!p) stop("unknown-c-function", describe(constant_kind(f)) + " is called with " + describe(args.keywords[i].second));
      PyDict_SetItem(keywords, args.keywords[i].first, p);
    }
  }
  if (frames::SizeLog* log = frames::size_log(); log && f != reinterpret_cast<PyObject*>(&PyLong_Type)) log->used(tuple);
  PyObject* r = PyObject_Call(f, tuple, keywords);
  if (!r) return raise_python();
  return from_result(keep(r));
}

Value* Trace::constant_kind(PyObject* f) { Value* v = constant(f); v->kind = kind_of_type(Py_TYPE(f), f); return v; }

Value* Trace::call_builtin(Value* f, const Args& args) {
  PyObject* o = f->real;
  PyTypeObject* t = Py_TYPE(o);
  const KnownTypes& k = known();
  if (Value* replaced = polyfill(o)) return call(replaced, args);
  if (t == k.op_overload || t == k.op_overload_packet) return call_leaf(o, nullptr, args);
  if (t == k.lru_cache) return call_lru_cache(f, args);
  if (t == k.method_descriptor || t == k.wrapper_descriptor || t == k.classmethod_descriptor) return call_method_descriptor(o, args);
  if (t == k.method_wrapper) {
    PyObject* self = PyObject_GetAttr(o, names().__self__);
    const std::string name = text_of(o, names().__name__);
    Value* m = self ? getattr(wrap_constant_object(keep(self)), name.c_str()) : raise_python();
    if (!m) return nullptr;
    if (kind(m) == Kind::builtin && m->real == o) stop("slot-wrapper", "a slot of an object of C is called");
    return call(m, args);
  }
  PyObject* self = PyCFunction_GET_SELF(o);
  const std::string name = text_of(o, names().__name__);
  if (self && PyType_Check(self)) {
    auto* owner = reinterpret_cast<PyTypeObject*>(self);
    if (name == "__new__") {
      if (!args.count || kind(args[0]) != Kind::klass) return raise(PyExc_TypeError, "object.__new__(): not enough arguments");
      return new_instance(reinterpret_cast<PyTypeObject*>(args[0]->real), args, true);
    }
    if (PyType_IsSubtype(owner, k.tensor) || PyType_IsSubtype(k.tensor, owner)) {
      if (owner != &PyBaseObject_Type) return leaf_of(o) == Leaf::graph ? call_leaf(o, nullptr, args) : (stop("tensor-class", "Tensor." + name + " is called"), nullptr);
    }
    if (leaf_of(o) == Leaf::graph) return call_leaf(o, nullptr, args);
    if (Value* replaced = polyfill_class_method(owner, name)) return call(replaced, args);
    if (name == "fromkeys" && PyType_IsSubtype(owner, &PyDict_Type)) {
      std::vector<Value*> all;
      if (!unpack(args[0], &all)) return nullptr;
      Value* d = make_object(owner);
      for (Value* x : all) { PyObject* key = key_of(x); if (!key) return nullptr; dict_set(d, key, args.count > 1 ? args[1] : none_); }
      return d;
    }
    if (owner == &PyUnicode_Type || owner == &PyBytes_Type || owner == &PyLong_Type || owner == &PyFloat_Type) return call_pure(o, args);
    if (name == "__init_subclass__" || name == "__subclasshook__") return none_;
    stop("unknown-c-function", std::string(owner->tp_name) + "." + name + " is called");
  }
  const std::string module = text_of(o, names().__module__);
  if (module == "builtins") {
    if (auto it = builtin_handlers().find(name); it != builtin_handlers().end()) return it->second(*this, args);
    if (is_pure(module, name)) return call_pure(o, args);
    stop("unknown-c-function", "the builtin " + name + "() is called");
  }
  if (module == "_operator") {
    if (name == "call") return call(args[0], args.rest(1));
    return call_operator(name, args);
  }
  if (leaf_of(o) == Leaf::graph) return call_leaf(o, nullptr, args);
  if (self && !PyModule_Check(self)) {   // a method that was taken from an object before
    if (module.empty()) {
      Value* owner = wrap_constant_object(self);
      force(owner);
      if (owner->kind == Kind::list || owner->kind == Kind::dict || owner->kind == Kind::set || owner->kind == Kind::constant || owner->kind == Kind::tensor) {
        Value* m = getattr(owner, name.c_str());
        return m ? call(m, args) : nullptr;
      }
    }
    stop("unknown-c-function", "the method " + name + " of " + describe(wrap_constant_object(self)) + " is called", "it is written in C, and capture does not know it");
  }
  if (is_pure(module, name)) {
    if (module == "math" && has_tensor(args)) stop("tensor-in-python-function", "math." + name + "() is called with a tensor", "use torch." + name);
    return call_pure(o, args);
  }
  if (module == "_warnings" && name == "warn") return queue_call(f, args);
  if (module == "_abc") {
    if (name == "_abc_instancecheck" || name == "_abc_subclasscheck") {
      bool r = false;
      if (name == "_abc_instancecheck" ? !isinstance(args[1], args[0], &r) : !issubclass(args[1], args[0], &r)) return nullptr;
      return boolean(r);
    }
  }
  stop("unknown-c-function", (module.empty() ? "" : module + ".") + name + "() is called: it is written in C, and no guard can see into it", "keep it outside of the compiled function");
}

Value* Trace::call_lru_cache(Value* f, const Args& args) {
  // The cache is not consulted: what the function computes is interpreted. A logger's "once" is the exception: it is queued with its cache.
  PyObject* wrapped = PyObject_GetAttr(f->real, names().__wrapped__);
  if (!wrapped) return raise_python();
  keep(wrapped);
  if (args.count && force(args[0])->real && PyType_IsSubtype(args[0]->type, known().logger)) return queue_call(f, args);
  const size_t effects = changed.size() + queued.size();
  Value* r = call(wrap_constant_object(wrapped), args);
  if (!r) return nullptr;
  if (!as_constant(r) && kind(r) != Kind::function && kind(r) != Kind::module && kind(r) != Kind::builtin && !(r->real && r->source))
    stop("lru-cache", describe(f) + " remembers its results, and gives " + describe(r), "call it outside of the compiled function");
  if (changed.size() + queued.size() != effects) stop("lru-cache", describe(f) + " remembers its results, and has effects");
  return r;
}

/// Runs after the graph: only with arguments that will not change meanwhile.
Value* Trace::queue_call(Value* f, const Args& args) {
  QueuedCall q{f, {}, {}, 0, {}};
  auto fixed = [&](Value* v) {
    force(v);
    if (as_constant(v) || (v->kind == Kind::object && v->real && PyType_IsSubtype(v->type, known().logger)) || v->kind == Kind::klass) return true;
    return false;
  };
  for (size_t i = 0; i < args.count; ++i) { if (!fixed(args[i])) stop("queued-call", describe(f) + " is called with " + describe(args[i])); q.args.push_back(args[i]); }
  for (size_t i = 0; i < args.keyword_count; ++i) { if (!fixed(args.keywords[i].second)) stop("queued-call", describe(f) + " is called with " + describe(args.keywords[i].second)); q.keywords.push_back(args.keywords[i]); }
  for (Frame* at = current_; at; at = at->caller) {
    int line = 0;
    for (int i = static_cast<int>(at->pc); i >= 0 && !line; --i) line = at->code->instructions()[static_cast<size_t>(i)].line;
    q.places.insert(q.places.begin(), {at->code->object(), line, function(at->function).globals_real});
  }
  q.before_node = node_count();
  queued.push_back(std::move(q));
  return none_;
}

Value* Trace::call_method_descriptor(PyObject* d, const Args& args) {
  PyTypeObject* owner = PyDescr_TYPE(d);
  const std::string name = PyUnicode_AsUTF8(PyDescr_NAME(d));
  if (!args.count) return raise(PyExc_TypeError, "unbound method " + std::string(owner->tp_name) + "." + name + "() needs an argument");
  Value* self = force(args[0]);
  const Args rest = args.rest(1);
  if (self->kind == Kind::constant && PyFrozenSet_Check(self->real) && name == "__contains__") { const int r = contains(self, args[1]); return r < 0 ? nullptr : boolean(r); }
  if (self->kind == Kind::tensor && owner != &PyBaseObject_Type && owner != &PyType_Type) return call_tensor_method(self, PyDescr_NAME(d), args);
  if (Py_TYPE(d) == known().wrapper_descriptor || owner == &PyBaseObject_Type || name.rfind("__", 0) == 0) {   // dict.__getitem__ is no slot wrapper
    if (Value* r = call_slot(d, owner, name, self, rest)) return r;
    if (raised_) return nullptr;
  }
  switch (self->kind) {
    case Kind::list: case Kind::tuple: case Kind::dict: case Kind::set: case Kind::generator: case Kind::iterator: case Kind::view: {
      bool is_known = false;
      Value* r = call_container_method(owner, name.c_str(), self, rest, &is_known);
      if (is_known) return r;
      break;
    }
    case Kind::constant:
      if (PyFrozenSet_Check(self->real)) {
        bool is_known = true;
        Value* s = make_set();
        s->type = &PyFrozenSet_Type;
        for (PyObject* it = keep(PyObject_GetIter(self->real)); PyObject* x = PyIter_Next(it);) set_add(s, keep(x));
        Value* r = call_set_method(name, s, rest, &is_known);
        if (is_known) return r;
      }
      if (self->type == &PyUnicode_Type && name == "format") {
        bool plain = true;
        for (size_t i = 0; i < rest.count; ++i) plain &= to_plain(rest[i]) != nullptr;
        for (size_t i = 0; i < rest.keyword_count; ++i) plain &= to_plain(rest.keywords[i].second) != nullptr;
        if (!plain) stop("format-of-a-value", "text is formatted from values that are not constants");
      }
      return call_pure(d, args);
    case Kind::klass:
      if (owner == &PyType_Type) {
        if (name == "mro") return constant_or_wrap(PyObject_CallMethod(self->real, "mro", nullptr));
        if (name == "__subclasses__") stop("subclasses", "the subclasses of a class are asked for");
      }
      break;
    case Kind::object:
      if (PyType_IsSubtype(self->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
        if (name == "with_traceback") return self;
        if (name == "add_note") { stop("exception-note", "a note is added to an exception"); }
      }
      break;
    default: break;
  }
  stop("unknown-c-function", std::string(owner->tp_name) + "." + name + "() is called on " + describe(self), "it is written in C, and capture does not know it");
}

// A slot of a C type called by its dunder: what a subclass reaches by super().
Value* Trace::call_slot(PyObject* d, PyTypeObject* owner, const std::string& name, Value* self, const Args& args) {
  auto name_argument = [&]() -> PyObject* {
    PyObject* n = args.count ? as_constant(args[0]) : nullptr;
    if (!n || !PyUnicode_Check(n)) { raise(PyExc_TypeError, "attribute name must be string"); return nullptr; }
    Py_INCREF(n);
    PyUnicode_InternInPlace(&n);
    return keep(n);
  };
  if (name == "__hash__" && self->kind == Kind::constant) return call_pure_slot(d, self, args);
  if (name == "__init__") return init_builtin(self, d, args) ? none_ : nullptr;
  if (name == "__setattr__") { PyObject* n = name_argument(); return n && (self->kind == Kind::object || instance_dict(self) ? generic_setattr(self, n, args[1]) : setattr(self, n, args[1])) ? none_ : nullptr; }
  if (name == "__delattr__") { PyObject* n = name_argument(); return n && generic_delattr(self, n) ? none_ : nullptr; }
  if (name == "__getattribute__") {
    PyObject* n = name_argument();
    if (!n) return nullptr;
    if (self->kind == Kind::object || self->kind == Kind::dict || self->kind == Kind::list || self->kind == Kind::tuple) return generic_attribute(self, n, nullptr);
    return getattr(self, n);
  }
  if (name == "__getitem__") return plain_subscript(self, args[0]);
  if (name == "__setitem__") return plain_store_subscript(self, args[0], args[1]) ? none_ : nullptr;
  if (name == "__delitem__" && self->kind == Kind::dict) {
    PyObject* k = key_of(args[0]);
    if (!k) return nullptr;
    return dict_delete(self, k) ? none_ : raise(make_exception(PyExc_KeyError, {args[0]}));
  }
  if (name == "__contains__" && self->kind == Kind::dict) { PyObject* k = key_of(args[0]); return k ? boolean(dict_get(self, k) != nullptr) : nullptr; }
  if (name == "__contains__" && owner != &PyBaseObject_Type) { const int r = contains(self, args[0]); return r < 0 ? nullptr : boolean(r); }
  if (name == "__len__") {
    if (self->kind == Kind::dict) return integer(static_cast<long long>(dict_size(self)));
    if (self->kind == Kind::list || self->kind == Kind::tuple) return integer(static_cast<long long>(items(self).size()));
    return length(self);
  }
  if (name == "__iter__") {
    if (self->kind == Kind::dict) return iterate_mapping(self, View::What::keys);
    if (self->kind == Kind::list || self->kind == Kind::tuple) { items(self); return make_iterator(Iterator::What::sequence, self); }
    return iter(self);
  }
  if (name == "__next__") {
    bool done = false;
    Value* v = next(self, &done);
    return done ? raise(make_exception(PyExc_StopIteration, {})) : v;
  }
  if (name == "__call__") {
    if (owner == &PyType_Type && self->kind == Kind::klass) return instantiate(reinterpret_cast<PyTypeObject*>(self->real), self, args);
    if (self->kind == Kind::object || self->kind == Kind::opaque) stop("unknown-callable", describe(self) + " is called, whose type is written in C");
    return call(self, args);
  }
  if (name == "__get__" && self->kind == Kind::function) {
    if (is_constant(args[0], Py_None)) return self;
    return make_method(self, args[0]);
  }
  if (name == "__init_subclass__") return none_;
  if (owner == &PyBaseObject_Type) {
    if (name == "__eq__") return same_identity(self, args[0]) ? boolean(true) : constant(Py_NotImplemented);
    if (name == "__ne__") { Value* r = compare(Py_EQ, self, args[0]); const int t = r ? truth(r) : -1; return t < 0 ? nullptr : boolean(!t); }
    if (name == "__hash__") stop("hash", "the hash of an object is asked for");
    if (name == "__reduce_ex__" || name == "__reduce__" || name == "__sizeof__" || name == "__dir__") stop("object-protocol", "object." + name + " is called");
    if (name == "__repr__" || name == "__str__" || name == "__format__") stop("text-of-a-value", describe(self) + " is turned into text");
    stop("object-protocol", "object." + name + " is called");
  }
  static const std::unordered_map<std::string_view, int> kBinary = {{"__add__", 0}, {"__and__", 1}, {"__floordiv__", 2}, {"__mul__", 5}, {"__mod__", 6}, {"__or__", 7}, {"__pow__", 8}, {"__sub__", 10},
      {"__truediv__", 11}, {"__xor__", 12}, {"__iadd__", 13}, {"__ior__", 20}};
  if (self->kind == Kind::constant) return call_pure_slot(d, self, args);
  if (self->kind == Kind::list || self->kind == Kind::tuple || self->kind == Kind::dict || self->kind == Kind::set) {
    if (self->type->tp_flags & Py_TPFLAGS_HEAPTYPE) stop("container-subclass", std::string(owner->tp_name) + "." + name + " is called on an instance of a derived class");
    if (auto it = kBinary.find(name); it != kBinary.end()) return binary(it->second, self, args[0]);
    static const std::unordered_map<std::string_view, int> kCompare = {{"__lt__", Py_LT}, {"__le__", Py_LE}, {"__eq__", Py_EQ}, {"__ne__", Py_NE}, {"__gt__", Py_GT}, {"__ge__", Py_GE}};
    if (auto it = kCompare.find(name); it != kCompare.end()) return compare(it->second, self, args[0]);
    if (name == "__repr__") return repr(self);
  }
  return nullptr;
}

Value* Trace::call_pure_slot(PyObject* d, Value* self, const Args& args) {
  std::vector<Value*> all{self};
  all.insert(all.end(), args.positional, args.positional + args.count);
  return call_pure(d, Args(all));
}

}  // namespace cutaway::capture
