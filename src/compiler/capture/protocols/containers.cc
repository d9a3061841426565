// Methods of the containers that the trace models.
#include "compiler/capture/protocols/containers.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

namespace {
/// The C method of sets, whatever a class of the program's has under its name.
PyObject* call_real_method(PyObject* set, std::string_view name, const std::vector<PyObject*>& others) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(PySet_Check(set) ? &PySet_Type : &PyFrozenSet_Type), std::string(name).c_str());
  std::vector<PyObject*> args{set};
  args.insert(args.end(), others.begin(), others.end());
  PyObject* result = method ? PyObject_Vectorcall(method, args.data(), args.size(), nullptr) : nullptr;
  Py_XDECREF(method);
  return result;
}
}  // namespace

// Sorts by keys that are constants, by Python's own comparison; stable in both directions.
// A number up to Python 3.11, the truth of anything since: for a value that is known, a list of this Python says.
bool Containers::is_reversed(Value* v, bool* reversed) {
#if PY_VERSION_HEX < 0x030c0000
  if (values.kind(v) != Kind::constant && !attributes.lookup_type(v->type, names().__index__)) return exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object cannot be interpreted as an integer"), false;
#endif
  if (values.kind(v) == Kind::constant) {
    static PyObject* const names_of_keywords = Py_BuildValue("(s)", "reverse");
    PyObject* list = values.keep(PyList_New(0));
    PyObject* sort = values.keep(PyObject_GetAttrString(list, "sort"));
    PyObject* arguments[] = {v->real};
    PyObject* done = PyObject_Vectorcall(sort, arguments, 0, names_of_keywords);
    if (!done) return exceptions.raise_python(), false;
    Py_DECREF(done);
  }
  const int t = subscripts.truth(v);
  *reversed = t > 0;
  return t >= 0;
}

// Objects with their own order: the comparisons that list.sort makes of so few items, in its order, each inlined. What raises leaves the items where they are.
bool Containers::sort_by_comparisons(std::vector<Value*>& all, const std::vector<Value*>& keys, bool reverse) {
  if (all.size() >= 64) stop("sort", "64 or more objects are sorted by comparisons of their own", "sort by a key that is a number or text");
  std::vector<std::pair<Value*, Value*>> rows;   // key, value
  for (size_t i = 0; i < all.size(); ++i) rows.emplace_back(keys[i], all[i]);
  if (reverse) std::reverse(rows.begin(), rows.end());   // twice, so that what is equal keeps its order
  bool is_uniform = true;
  for (Value* k : keys) is_uniform = is_uniform && values.type_of(k) == values.type_of(keys[0]);
  const auto is_less = [&](const auto& a, const auto& b) {
    if (is_uniform && is_user_class(a.first->type)) {   // Python asks the slot of their class, and begins anew with both sides where that does not know
      Value* said = operators.dunder(a.first, "__lt__", b.first);
      if (!said && exceptions.raised()) return -1;
      if (said && !values.is_constant(said, Py_NotImplemented)) return subscripts.truth(said);
    }
    Value* less = operators.compare(Py_LT, a.first, b.first);
    return less ? subscripts.truth(less) : -1;
  };
  const auto at = [&](size_t i) { return rows.begin() + static_cast<long>(i); };
  // The length of the run that is there already, put in order; 0: an exception.
#if PY_VERSION_HEX < 0x030D0000
  const auto first_run = [&]() -> size_t {
    const int falls = is_less(rows[1], rows[0]);
    if (falls < 0) return 0;
    size_t n = 2;
    for (; n < rows.size(); ++n) {
      const int less = is_less(rows[n], rows[n - 1]);
      if (less < 0) return 0;
      if (less != falls) break;
    }
    if (falls) std::reverse(rows.begin(), at(n));
    return n;
  };
#else
  const auto first_run = [&]() -> size_t {
    size_t n = 1;
    const auto rise = [&] {   // to the first that is less than the one before it
      for (int less = 0; n < rows.size(); ++n)
        if ((less = is_less(rows[n], rows[n - 1]))) return less > 0;
      return true;
    };
    if (!rise()) return 0;
    if (n == rows.size()) return n;
    if (n > 1) {   // all of them may be equal, and the run still fall
      const int rises = is_less(rows[0], rows[n - 1]);
      if (rises) return rises < 0 ? 0 : n;
      std::reverse(rows.begin(), at(n));
    }
    size_t equal = 0;   // so many at the end are equal to the one before them, and stay in their order
    const auto turn_equal = [&] {
      if (equal) std::reverse(at(n - equal - 1), at(n));
      equal = 0;
    };
    for (++n; n < rows.size(); ++n) {
      const int less = is_less(rows[n], rows[n - 1]);
      if (less < 0) return 0;
      if (less) { turn_equal(); continue; }
      const int more = is_less(rows[n - 1], rows[n]);
      if (more < 0) return 0;
      if (more) break;
      ++equal;
    }
    turn_equal();
    std::reverse(rows.begin(), at(n));
    return rise() ? n : 0;
  };
#endif
  const auto sort = [&] {
    if (rows.size() < 2) return true;
    size_t sorted = first_run();
    if (!sorted) return false;
    for (; sorted < rows.size(); ++sorted) {
      const auto pivot = rows[sorted];
      size_t left = 0, right = sorted;
      while (left < right) {
        const size_t middle = left + (right - left) / 2;
        const int less = is_less(pivot, rows[middle]);
        if (less < 0) return false;
        if (less) right = middle;
        else left = middle + 1;
      }
      rows.erase(at(sorted));
      rows.insert(at(left), pivot);
    }
    return true;
  };
  const bool ok = sort();
  if (reverse) std::reverse(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) all[i] = rows[i].second;
  return ok;
}

bool Containers::sort_values(std::vector<Value*>& all, Value* key, bool reverse, const Tail& tail, Value* target) {
  std::vector<Value*> keys;
  const bool has_key = key && !values.is_constant(key, Py_None);
  // As the frame behind a break has them: the keys as pairs of those before and the last one, which nobody looks at before the end.
  Value *to_sort = nullptr, *rest = nullptr, *so_far = values.none();
  if (has_key && tail.is) { to_sort = values.make_list(all); rest = values.make_iterator(Iterator::What::sequence, to_sort); }
  for (Value* v : all) {
    if (rest) ++body<Iterator>(rest).position;
    if (rest && target) endings.end_with(tail, "after_key_of_sort", {target, to_sort, rest, so_far, key, values.boolean(reverse)});
    else if (rest) endings.end_with(tail, "after_key_of_sorted", {to_sort, rest, so_far, key, values.boolean(reverse)});
    Value* k = has_key ? calls.call(key, {v}) : v;
    if (!k) return false;
    keys.push_back(k);
    if (rest) so_far = values.make_tuple({so_far, k});
  }
  PyObject *plain = values.keep(PyList_New(0)), *order = values.keep(PyList_New(0));
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* k = texts.to_plain(keys[i]);
    if (k && keys[i]->kind == Kind::constant && is_user_class(keys[i]->type) && attributes.own_operator(keys[i]->type, values.keep(PyUnicode_InternFromString("__lt__")))) k = nullptr;   // of an enumeration
    if (!k) return sort_by_comparisons(all, keys, reverse);
    if (frames::SizeLog* log = frames::size_log()) log->used(k);   // their order is not written down
    PyList_Append(plain, k);
    PyList_Append(order, values.integer(static_cast<long long>(i))->real);
  }
  // Python sorts the places by these keys; where it fails it leaves them in the order that the list would have.
  PyObject* key_at = values.keep(PyObject_GetAttr(plain, names().__getitem__));
  static PyObject* const keywords = Py_BuildValue("(ss)", "key", "reverse");
  PyObject* given[] = {order, key_at, reverse ? Py_True : Py_False};
  static PyObject* const sort = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "sort");
  PyObject* done = PyObject_Vectorcall(sort, given, 1, keywords);
  Py_XDECREF(done);
  if (!done) exceptions.raise_python();
  std::vector<Value*> sorted;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); ++i) sorted.push_back(all[static_cast<size_t>(PyLong_AsSsize_t(PyList_GET_ITEM(order, i)))]);
  all = std::move(sorted);
  return done != nullptr;
}

void Containers::append(Value* list, Value* x, bool left) {
  auto& all = values.items(list);
  Sequence& s = body<Sequence>(list);
  if (s.limit == 0) return;
  all.insert(left ? all.begin() : all.end(), x);
  if (s.limit >= 0 && all.size() > static_cast<size_t>(s.limit)) all.erase(left ? all.end() - 1 : all.begin());
  ++s.changes;
}

Value* Containers::call_list_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  const Tail tail = endings.take_tail();
  if (Sequence& s = body<Sequence>(self); name == "append" && args.count == 1 && !args.keyword_count && self->type == &PyList_Type && self->real && !s.is_loaded && !s.is_counted) {
    s.appended.push_back(args[0]);   // what is there before need not be known
    effects.mark_changed(self);
    return values.none();
  }
  auto& all = values.items(self);
  const bool deque = is_deque(self);
  if (deque)
    if (Value* r = call_deque_method(name, self, args); r || exceptions.raised()) return r;
  if (name == "numel" && self->type == known().size)
    if (PyObject* c = values.as_constant(self)) return values.constant_steal(PyObject_CallMethod(c, "numel", nullptr));
  if (name == "append") { append(self, args[0]); effects.mark_changed(self); return values.none(); }
  if (name == "extend") return iteration.extend(self, args[0]) ? values.none() : nullptr;
  if (name == "pop") {
    Py_ssize_t i = -1;
    if (args.count && !subscripts.argument_number(args[0], &i)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (size == 0) return exceptions.raise(PyExc_IndexError, deque ? "pop from an empty deque" : "pop from empty list");
    if (i < 0) i += size;
    if (i < 0 || i >= size) return exceptions.raise(PyExc_IndexError, "pop index out of range");
    Value* v = all[static_cast<size_t>(i)];
    all.erase(all.begin() + i);
    effects.mark_changed(self);
    return v;
  }
  if (name == "insert") {
    Py_ssize_t i = 0;
    if (!subscripts.argument_number(args[0], &i)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (deque && body<Sequence>(self).limit >= 0 && size >= body<Sequence>(self).limit) return exceptions.raise(PyExc_IndexError, "deque already at its maximum size");
    if (i < 0) i = std::max<Py_ssize_t>(0, i + size);
    all.insert(all.begin() + std::min(i, size), args[1]);
    effects.mark_changed(self);
    return values.none();
  }
  if (name == "clear") { all.clear(); effects.mark_changed(self); return values.none(); }
  if (name == "copy" || name == "__copy__") return values.make_list(all);
  if (name == "reverse") { std::reverse(all.begin(), all.end()); effects.mark_changed(self); return values.none(); }
  if (name == "index" || name == "count" || name == "remove") {
    Py_ssize_t start = 0, stop_at = PY_SSIZE_T_MAX;
    auto bound = [&](Value* v, Py_ssize_t* n) {
      if (subscripts.index_number(v, n, nullptr)) return *n = std::max(*n, PY_SSIZE_T_MIN / 2), true;
      if (exceptions.raised_is(PyExc_TypeError) && v->kind != Kind::tensor && !attributes.lookup_type(v->type, names().__index__)) { exceptions.take_raised(); exceptions.raise(PyExc_TypeError, "slice indices must be integers or have an __index__ method"); }
      return false;
    };
    if (args.count > 1 && !bound(args[1], &start)) return nullptr;
    if (args.count > 2 && !bound(args[2], &stop_at)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    const size_t changes = body<Sequence>(self).changes;
    if (start < 0) start = std::max<Py_ssize_t>(0, start + size);
    if (stop_at < 0) stop_at += size;
    long long count = 0;
    for (Py_ssize_t i = start; i < stop_at && i < static_cast<Py_ssize_t>(all.size()); ++i) {
      const int same = operators.equal(all[static_cast<size_t>(i)], args[0]);
      if (same < 0) return nullptr;
      if (static_cast<Py_ssize_t>(all.size()) != size || body<Sequence>(self).changes != changes) stop("container-changed", "a comparison changes the list or deque whose items it compares");
      if (!same) continue;
      ++count;
      if (name == "index") return values.integer(i);
      if (name == "remove") { all.erase(all.begin() + i); effects.mark_changed(self); return values.none(); }
    }
    if (name == "count") return values.integer(count);
    if (name == "remove") return exceptions.raise(PyExc_ValueError, "list.remove(x): x not in list");
    Value* r = texts.repr(args[0]);
    if (!r) return nullptr;
    return exceptions.raise(PyExc_ValueError, self->kind == Kind::list ? std::string(PyUnicode_AsUTF8(r->real)) + (deque ? " is not in deque" : " is not in list") : std::string("tuple.index(x): x not in tuple"));
  }
  if (name == "sort") {
    Value* key = nullptr;
    bool reverse = false;
    for (size_t i = 0; i < args.keyword_count; ++i) {
      if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "key") == 0) key = args.keywords[i].second;
      else if (!is_reversed(args.keywords[i].second, &reverse)) return nullptr;
    }
    std::vector<Value*> sorted = std::exchange(all, {});   // keys and comparisons see an empty list
    effects.mark_changed(self);
    const bool ok = sort_values(sorted, key, reverse, tail, self);
    const bool was_changed = !all.empty();
    all = std::move(sorted);
    if (!ok) return nullptr;
    return was_changed ? exceptions.raise(PyExc_ValueError, "list modified during sort") : values.none();
  }
  *known_method = false;
  return nullptr;
}

Value* Containers::call_dict_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  if (self->type == known().mappingproxy) {   // its methods are the dict's
    if (Value* dict = classes.behind_proxy(self); dict != self) return calls.call_method(dict, std::string(name).c_str(), args);
    if (name == "copy") stop("mapping-proxy", "a proxy of a dict is copied");   // what type comes of it is not known any more
  }
  if (is_user_class(self->type) && PyType_IsSubtype(self->type, known().ordered_dict) && (name == "pop" || name == "setdefault" || name == "popitem" || name == "move_to_end" || name == "clear"))
    for (PyObject* asked : {names().__getitem__, names().__setitem__, names().__delitem__, names().__contains__})
      if (attributes.own_method(self->type, asked)) stop("container-subclass", "OrderedDict." + std::string(name) + " is called on an instance of a class below, whose own methods it asks");
  if (name == "items") return values.make_view(View::What::items, self);
  if (name == "keys") return values.make_view(View::What::keys, self);
  if (name == "values") return values.make_view(View::What::values, self);
  if (name == "get" || name == "pop" || name == "setdefault") {
    if (!args.count) stop("unknown-c-function", "dict." + std::string(name) + "() is called with its key as a keyword argument");
    PyObject* k = mappings.key_of(args[0]);
    if (!k) return nullptr;
    Value* found = mappings.dict_get(self, k);
    Value* other = args.count > 1 ? args[1] : args.keyword_count ? args.keywords[0].second : nullptr;
    if (name == "get") return found ? found : other ? other : values.none();
    if (name == "setdefault") {
      if (found) return found;
      mappings.dict_set(self, k, other ? other : values.none());
      return other ? other : values.none();
    }
    if (!found) return other ? other : exceptions.raise(exceptions.make_exception(PyExc_KeyError, {args[0]}));
    mappings.dict_delete(self, k);
    return found;
  }
  if (name == "update") {
    if (args.count && !iteration.dict_update(self, args[0])) return nullptr;
    return iteration.update_by_keywords(self, args) ? values.none() : nullptr;
  }
  if (name == "copy" || name == "__copy__") {
    const bool is_default = PyType_IsSubtype(self->type, known().defaultdict), is_ordered = PyType_IsSubtype(self->type, known().ordered_dict);
    if (is_user_class(self->type) && (is_default || is_ordered)) {   // these make another one of the class; dict makes a dict
      Value* klass = values.wrap_constant_object(reinterpret_cast<PyObject*>(self->type));
      if (is_default) return calls.call(klass, {body<Mapping>(self).default_factory ? body<Mapping>(self).default_factory : values.none(), self});
      Value* d = calls.call(klass, {});
      for (PyObject* k : mappings.keys_of(self)) if (!d || !subscripts.store_subscript(d, mappings.value_of_key(k), mappings.dict_get(self, k))) return nullptr;
      return d;
    }
    Value* d = is_default || is_ordered ? values.make_object(self->type) : values.make_dict();
    body<Mapping>(d).default_factory = body<Mapping>(self).default_factory;
    if (is_user_class(self->type)) return iteration.dict_update(d, self) ? d : nullptr;   // by its own methods where it iterates in its own way
    for (PyObject* k : mappings.keys_of(self)) mappings.dict_set(d, k, mappings.dict_get(self, k));
    return d;
  }
  if (name == "clear") { mappings.dict_load(self); PyDict_Clear(body<Mapping>(self).items); ++body<Mapping>(self).changes; effects.mark_changed(self); return values.none(); }
  if (name == "__missing__" && PyType_IsSubtype(self->type, known().defaultdict)) {
    Value* factory = body<Mapping>(self).default_factory;
    if (!factory || values.is_constant(factory, Py_None)) return exceptions.raise(exceptions.make_exception(PyExc_KeyError, {args[0]}));
    Value* made = calls.call(factory, {});
    return made && subscripts.store_subscript(self, args[0], made) ? made : nullptr;
  }
  if (name == "popitem") {
    auto keys = mappings.keys_of(self);
    if (keys.empty()) return exceptions.raise(PyExc_KeyError, self->type == known().ordered_dict ? "dictionary is empty" : "popitem(): dictionary is empty");
    Value* last = args.count ? args[0] : args.keyword_count ? args.keywords[0].second : nullptr;
    const int from_end = last ? subscripts.truth(last) : 1;
    if (from_end < 0) return nullptr;
    const bool first = self->type != &PyDict_Type && !from_end;
    PyObject* k = values.keep(Py_NewRef(first ? keys.front() : keys.back()));
    Value* v = mappings.dict_get(self, k);
    mappings.dict_delete(self, k);
    return values.make_tuple({mappings.value_of_key(k), v});
  }
  if (name == "move_to_end") {
    if (!args.count) stop("unknown-c-function", "OrderedDict.move_to_end() is called with its key as a keyword argument");
    PyObject* k = mappings.key_of(args[0]);
    if (!k) return nullptr;
    Value* v = mappings.dict_get(self, k);
    if (!v) return exceptions.raise(exceptions.make_exception(PyExc_KeyError, {args[0]}));
    Value* given = args.count > 1 ? args[1] : args.keyword_count ? args.keywords[0].second : nullptr;
    const int last = given ? subscripts.truth(given) : 1;
    if (last < 0) return nullptr;
    for (PyObject* stored : mappings.keys_of(self)) if (PyObject_RichCompareBool(stored, k, Py_EQ) == 1) k = values.keep(Py_NewRef(stored));   // the key that is there stays, not the equal one
    if (last) { mappings.dict_delete(self, k); mappings.dict_set(self, k, v); return values.none(); }
    std::vector<std::pair<PyObject*, Value*>> rest;
    for (PyObject* other : mappings.keys_of(self)) if (PyObject_RichCompareBool(other, k, Py_EQ) != 1) rest.emplace_back(values.keep(Py_NewRef(other)), mappings.dict_get(self, other));
    values.keep(Py_NewRef(k));
    PyDict_Clear(body<Mapping>(self).items);
    ++body<Mapping>(self).changes;
    mappings.dict_set(self, k, v);
    for (auto& [other, x] : rest) mappings.dict_set(self, other, x);
    return values.none();
  }
  *known_method = false;
  return nullptr;
}

// Beside its items a set of the trace has a real set of their keys, which the real method is called on: so its order is what eager's would be.
Value* Containers::call_set_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  if (name == "add" || name == "discard" || name == "remove") {
    PyObject* k = name == "add" ? mappings.key_of(args[0]) : mappings.key_to_find(args[0]);
    if (!k) return nullptr;
    if (name == "add") { mappings.set_add(self, k); return values.none(); }
    if (!mappings.set_discard(self, k) && name == "remove") return exceptions.raise(exceptions.make_exception(PyExc_KeyError, {args[0]}));
    return values.none();
  }
  if (name == "pop") {
    mappings.set_load(self);
    Mapping& m = body<Mapping>(self);
    if (!PySet_GET_SIZE(m.order)) return exceptions.raise(PyExc_KeyError, "pop from an empty set");
    if (self->real && PySet_GET_SIZE(m.order) > 1) stop("set-order", "an item is popped from a set that existed before the call");
    PyObject* k = values.keep(PySet_Pop(m.order));
    PyDict_DelItem(m.items, k);
    effects.mark_changed(self);
    return mappings.value_of_key(k);
  }
  if (name == "clear") { for (PyObject* k : mappings.keys_of(self)) mappings.set_discard(self, k); return values.none(); }
  const auto is_set = [&](Value* v) { values.force(v); return v->kind == Kind::set || (v->kind == Kind::constant && PyFrozenSet_Check(v->real)); };
  const auto real_of = [&](Value* v) -> PyObject* {
    if (v->kind == Kind::constant) return v->real;
    mappings.set_load(v);
    if (!v->real || v->is_changed) return body<Mapping>(v).order;
    guards.add(v->source, GuardKind::dict_keys, values.keep(PySequence_Tuple(values.keep(PySet_Type.tp_iter(v->real)))));
    return v->real;
  };
  if (name == "update" || name == "difference_update") {   // item by item, and what came before an error stays
    const bool adds = name == "update";
    for (size_t i = 0; i < args.count; ++i) {
      if (is_set(args[i])) {
        if (!change_set(name, self, {real_of(args[i])})) return nullptr;
      } else if (!iteration.for_each(args[i], [&](Value* x) {
                   PyObject* k = mappings.key_of(x);
                   if (k && adds) mappings.set_add(self, k);
                   else if (k) mappings.set_discard(self, k);
                   return k != nullptr;
                 })) return nullptr;
    }
    return values.none();
  }
  if ((name == "issuperset" || name == "isdisjoint") && !is_set(args[0])) {   // up to the first item that decides
    const bool decides = name == "isdisjoint";
    bool is_decided = false;
    const bool ok = iteration.for_each(args[0], [&](Value* x) {
      PyObject* k = mappings.key_of(x);
      if (k && self->kind == Kind::set) mappings.set_load(self);
      if (k) is_decided = (PySet_Contains(self->kind == Kind::set ? body<Mapping>(self).order : self->real, k) == 1) == decides;
      mappings.check_keys();
      return k && !is_decided;
    });
    return ok || is_decided ? values.boolean(!is_decided) : nullptr;
  }
  static constexpr std::string_view names[] = {"copy", "__copy__", "union", "intersection", "difference", "symmetric_difference", "intersection_update", "symmetric_difference_update", "issubset", "issuperset", "isdisjoint"};
  if (std::find(std::begin(names), std::end(names), name) == std::end(names)) { *known_method = false; return nullptr; }
  PyObject* own = real_of(self);
  const Py_ssize_t size = PySet_GET_SIZE(own);
  std::vector<PyObject*> others;
  for (size_t i = 0; i < args.count; ++i) {
    if (is_set(args[i])) { others.push_back(real_of(args[i])); continue; }
    if (args[i]->kind == Kind::dict && args[i]->type == &PyDict_Type) { mappings.dict_load(args[i]); others.push_back(body<Mapping>(args[i]).items); continue; }
    PyObject* keys = values.keep(PyList_New(0));
    if (!iteration.for_each(args[i], [&](Value* x) { PyObject* k = mappings.key_of(x); if (k) PyList_Append(keys, k); return k != nullptr; })) return nullptr;
    others.push_back(keys);
  }
  if (PySet_GET_SIZE(real_of(self)) != size) stop("container-changed", "a set is changed by what it is combined with");
  if (name.ends_with("_update")) return change_set(name, self, others);
  const bool frozen = self->kind == Kind::constant || PyType_IsSubtype(self->type, &PyFrozenSet_Type);
  if (frozen && (name == "copy" || name == "__copy__") && !is_user_class(self->type)) return self;
  PyObject* result = call_real_method(own, name, others);
  mappings.check_keys();
  if (!result) return exceptions.raise_python();
  if (!PyAnySet_Check(result)) return values.constant_steal(result);
  Value* made = set_of_keys(result);
  if (frozen) made->type = &PyFrozenSet_Type;
  return made;
}

// A method that changes a set in place, and its items after that.
Value* Containers::change_set(std::string_view name, Value* self, const std::vector<PyObject*>& others) {
  Mapping& m = body<Mapping>(self);
  mappings.set_load(self);
  PyObject* done = call_real_method(m.order, name, others);
  mappings.check_keys();
  if (!done) return exceptions.raise_python();
  Py_DECREF(done);
  for (PyObject *all = values.keep(PySequence_Tuple(m.items)), **k = &PyTuple_GET_ITEM(all, 0), **end = k + PyTuple_GET_SIZE(all); k != end; ++k)
    if (PySet_Contains(m.order, *k) != 1) PyDict_DelItem(m.items, *k);
  for (PyObject* it = values.keep(PyObject_GetIter(m.order)); PyObject* k = PyIter_Next(it);) {
    values.keep(k);
    if (PyDict_Contains(m.items, k) == 1) continue;
    PyObject* number = PyLong_FromVoidPtr(mappings.value_of_key(k));
    PyDict_SetItem(m.items, k, number);
    Py_DECREF(number);
  }
  effects.mark_changed(self);
  return values.none();
}

Value* Containers::call_container_method(PyTypeObject*, const char* name, Value* self, const Args& args, bool* is_known) {
  *is_known = true;
  values.force(self);
  bool known_method = true;
  Value* r = nullptr;
  switch (self->kind) {
    case Kind::list: case Kind::tuple: r = call_list_method(name, self, args, &known_method); break;
    case Kind::dict: r = call_dict_method(name, self, args, &known_method); break;
    case Kind::set: r = call_set_method(name, self, args, &known_method); break;
    case Kind::generator: {
      const std::string_view n = name;
      if (n == "send" || n == "__next__") {
        Value* v = interpreter.resume_generator(self, args.count ? args[0] : values.none(), nullptr);
        if (v || exceptions.raised()) return v;
        Value* result = interpreter.last_return();
        return exceptions.raise(exceptions.make_exception(PyExc_StopIteration, values.is_constant(result, Py_None) ? std::vector<Value*>{} : std::vector<Value*>{result}));
      }
      if (n == "throw") {
        Value* e = args[args.count > 1 && !values.is_constant(args[1], Py_None) ? 1 : 0];
        const auto is_exception = [](PyTypeObject* t) { return PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) != 0; };
        if (values.kind(e) == Kind::klass && is_exception(reinterpret_cast<PyTypeObject*>(e->real))) e = calls.call(e, {});
        if (!e) return nullptr;
        if (values.kind(e) != Kind::object || !is_exception(e->type)) stop("unknown-c-function", "throw() of a generator is given " + values.describe(e) + " for an exception", "give it an exception");
        Value* v = interpreter.resume_generator(self, nullptr, e);
        if (v || exceptions.raised()) return v;
        Value* result = interpreter.last_return();
        return exceptions.raise(exceptions.make_exception(PyExc_StopIteration, values.is_constant(result, Py_None) ? std::vector<Value*>{} : std::vector<Value*>{result}));
      }
      if (n == "close") {
        if (body<Generator>(self).is_done || !body<Generator>(self).is_started) { body<Generator>(self).is_done = true; return values.none(); }
        Value* v = interpreter.resume_generator(self, nullptr, exceptions.make_exception(PyExc_GeneratorExit, {}));
        if (v) return exceptions.raise(PyExc_RuntimeError, std::string(self->type->tp_name) + " ignored GeneratorExit");
        if (exceptions.raised_is(PyExc_GeneratorExit) || exceptions.raised_is(PyExc_StopIteration)) exceptions.take_raised();
        return exceptions.raised() ? nullptr : values.none();
      }
      if (n == "__iter__" || n == "__await__") return self;
      known_method = false;
      break;
    }
    case Kind::iterator: {
      if (std::string_view(name) == "__iter__") return self;
      if (std::string_view(name) == "__length_hint__") {
        const Iterator& i = body<Iterator>(self);
        size_t n = 0;
        switch (i.what) {
          case Iterator::What::sequence: n = values.items(i.base).size(); break;
          case Iterator::What::constants: case Iterator::What::mapping: n = i.parts.size(); break;
          case Iterator::What::real_sequence: n = i.size; break;
          default: known_method = false;
        }
        if (!known_method) break;
        return values.integer(i.is_done || i.position > n ? 0 : static_cast<long long>(n - i.position));
      }
      if (std::string_view(name) == "__next__") {
        bool done = false;
        Value* v = iteration.next(self, &done);
        return done ? exceptions.raise(exceptions.make_exception(PyExc_StopIteration, {})) : v;
      }
      known_method = false;
      break;
    }
    case Kind::view: {
      if (std::string_view(name) == "__iter__") return iteration.iter(self);
      if (std::string_view(name) == "isdisjoint" && body<View>(self).what == View::What::keys) { Value* s = values.make_set(); for (PyObject* k : mappings.keys_of(body<View>(self).dict)) mappings.set_add(s, k); return call_set_method(name, s, args, &known_method); }
      known_method = false;
      break;
    }
    default: known_method = false;
  }
  *is_known = known_method;
  return r;
}

}  // namespace cutaway::capture
