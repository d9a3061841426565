// Methods of the containers that the trace models.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compiler/capture/names.h"
#include "compiler/capture/trace.h"
#include "compiler/capture/types.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

// Sorts by keys that are constants, by Python's own comparison; stable in both directions.
// A number up to Python 3.11, the truth of anything since: for a value that is known, a list of this Python says.
bool Trace::is_reversed(Value* v, bool* reversed) {
#if PY_VERSION_HEX < 0x030c0000
  if (kind(v) != Kind::constant && !lookup_type(v->type, names().__index__)) return raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object cannot be interpreted as an integer"), false;
#endif
  if (kind(v) == Kind::constant) {
    static PyObject* const names_of_keywords = Py_BuildValue("(s)", "reverse");
    PyObject* list = keep(PyList_New(0));
    PyObject* sort = keep(PyObject_GetAttrString(list, "sort"));
    PyObject* arguments[] = {v->real};
    PyObject* done = PyObject_Vectorcall(sort, arguments, 0, names_of_keywords);
    if (!done) return raise_python(), false;
    Py_DECREF(done);
  }
  const int t = truth(v);
  *reversed = t > 0;
  return t >= 0;
}

bool Trace::sort_values(std::vector<Value*>& all, Value* key, bool reverse, const Tail& tail, Value* target) {
  std::vector<Value*> keys;
  const bool has_key = key && !is_constant(key, Py_None);
  // As the frame behind a break has them: the keys as pairs of those before and the last one, which nobody looks at before the end.
  Value *to_sort = nullptr, *rest = nullptr, *so_far = none_;
  if (has_key && tail.is) { to_sort = make_list(all); rest = make_iterator(Iterator::What::sequence, to_sort); }
  for (Value* v : all) {
    if (rest) ++body<Iterator>(rest).position;
    if (rest && target) end_with(tail, "after_key_of_sort", {target, to_sort, rest, so_far, key, boolean(reverse)});
    else if (rest) end_with(tail, "after_key_of_sorted", {to_sort, rest, so_far, key, boolean(reverse)});
    Value* k = has_key ? call(key, {v}) : v;
    if (!k) return false;
    keys.push_back(k);
    if (rest) so_far = make_tuple({so_far, k});
  }
  PyObject* rows = keep(PyList_New(0));
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* k = to_plain(keys[i]);
    if (!k) {   // objects with their own order: a merge of single comparisons, inlined
      std::vector<size_t> order(all.size());
      for (size_t j = 0; j < order.size(); ++j) order[j] = j;
      for (size_t j = 1; j < order.size(); ++j)
        for (size_t m = j; m > 0; --m) {
          Value* less = reverse ? compare(Py_LT, keys[order[m - 1]], keys[order[m]]) : compare(Py_LT, keys[order[m]], keys[order[m - 1]]);
          if (!less) return false;
          const int t = truth(less);
          if (t < 0) return false;
          if (!t) break;
          std::swap(order[m], order[m - 1]);
        }
      std::vector<Value*> sorted;
      for (const size_t j : order) sorted.push_back(all[j]);
      all = std::move(sorted);
      return true;
    }
    if (frames::SizeLog* log = frames::size_log()) log->used(k);   // their order is not written down
    PyObject* row = Py_BuildValue("(On)", k, reverse ? -static_cast<Py_ssize_t>(i) : static_cast<Py_ssize_t>(i));
    PyList_Append(rows, row);
    Py_DECREF(row);
  }
  if (PyList_Sort(rows) < 0) { raise_python(); return false; }
  if (reverse) PyList_Reverse(rows);
  std::vector<Value*> sorted;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); ++i) {
    const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(PyList_GET_ITEM(rows, i), 1));
    sorted.push_back(all[static_cast<size_t>(at < 0 ? -at : at)]);
  }
  all = std::move(sorted);
  return true;
}

Value* Trace::call_list_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  const Tail tail = take_tail();
  if (Sequence& s = body<Sequence>(self); name == "append" && args.count == 1 && !args.keyword_count && self->type == &PyList_Type && self->real && !s.is_loaded && !s.is_counted) {
    s.appended.push_back(args[0]);   // what is there before need not be known
    mark_changed(self);
    return none_;
  }
  auto& all = items(self);
  const bool deque = is_deque(self);
  if (deque)
    if (Value* r = call_deque_method(name, self, args); r || raised_) return r;
  if (name == "numel" && self->type == known().size)
    if (PyObject* c = as_constant(self)) return constant_steal(PyObject_CallMethod(c, "numel", nullptr));
  if (name == "append") { all.push_back(args[0]); mark_changed(self); return none_; }
  if (name == "extend") {
    std::vector<Value*> more;
    if (!unpack(args[0], &more)) return nullptr;
    auto& into = items(self);
    into.insert(into.end(), more.begin(), more.end());
    mark_changed(self);
    return none_;
  }
  if (name == "pop") {
    Py_ssize_t i = -1;
    if (args.count && !index_number(args[0], &i)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (size == 0) return raise(PyExc_IndexError, deque ? "pop from an empty deque" : "pop from empty list");
    if (i < 0) i += size;
    if (i < 0 || i >= size) return raise(PyExc_IndexError, "pop index out of range");
    Value* v = all[static_cast<size_t>(i)];
    all.erase(all.begin() + i);
    mark_changed(self);
    return v;
  }
  if (name == "insert") {
    Py_ssize_t i = 0;
    if (!index_number(args[0], &i)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (i < 0) i = std::max<Py_ssize_t>(0, i + size);
    all.insert(all.begin() + std::min(i, size), args[1]);
    mark_changed(self);
    return none_;
  }
  if (name == "clear") { all.clear(); mark_changed(self); return none_; }
  if (name == "copy" || name == "__copy__") return make_list(all);
  if (name == "reverse") { std::reverse(all.begin(), all.end()); mark_changed(self); return none_; }
  if (name == "index" || name == "count" || name == "remove") {
    Py_ssize_t start = 0, stop_at = static_cast<Py_ssize_t>(all.size());
    const auto size = stop_at;
    auto bound = [&](Value* v, Py_ssize_t* n) {
      if (index_number(v, n)) return true;
      if (raised_is(PyExc_TypeError)) { take_raised(); raise(PyExc_TypeError, "slice indices must be integers or have an __index__ method"); }
      if (raised_is(PyExc_IndexError)) { take_raised(); *n = PyObject_RichCompareBool(as_constant(v), as_constant(integer(0)), Py_LT) == 1 ? PY_SSIZE_T_MIN / 2 : PY_SSIZE_T_MAX; return true; }
      return false;
    };
    if (args.count > 1 && !bound(args[1], &start)) return nullptr;
    if (args.count > 2 && !bound(args[2], &stop_at)) return nullptr;
    if (start < 0) start = std::max<Py_ssize_t>(0, start + size);
    if (stop_at < 0) stop_at += size;
    long long count = 0;
    for (Py_ssize_t i = start; i < std::min(stop_at, size); ++i) {
      const int same = equal(all[static_cast<size_t>(i)], args[0]);
      if (same < 0) return nullptr;
      if (!same) continue;
      ++count;
      if (name == "index") return integer(i);
      if (name == "remove") { all.erase(all.begin() + i); mark_changed(self); return none_; }
    }
    if (name == "count") return integer(count);
    if (name == "remove") return raise(PyExc_ValueError, "list.remove(x): x not in list");
    Value* r = repr(args[0]);
    if (!r) return nullptr;
    return raise(PyExc_ValueError, self->kind == Kind::list ? std::string(PyUnicode_AsUTF8(r->real)) + (deque ? " is not in deque" : " is not in list") : std::string("tuple.index(x): x not in tuple"));
  }
  if (name == "sort") {
    Value* key = nullptr;
    bool reverse = false;
    for (size_t i = 0; i < args.keyword_count; ++i) {
      if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "key") == 0) key = args.keywords[i].second;
      else if (!is_reversed(args.keywords[i].second, &reverse)) return nullptr;
    }
    std::vector<Value*> sorted = all;
    if (!key || is_constant(key, Py_None)) {
      if (!sort_values(sorted, nullptr, reverse)) return nullptr;
    } else {   // keys see an empty list
      items(self).clear();
      mark_changed(self);
      const bool ok = sort_values(sorted, key, reverse, tail, self);
      const bool was_changed = !items(self).empty();
      items(self) = sorted;
      if (ok && was_changed) return raise(PyExc_ValueError, "list modified during sort");
      if (!ok) return nullptr;
    }
    items(self) = std::move(sorted);
    mark_changed(self);
    return none_;
  }
  *known_method = false;
  return nullptr;
}

Value* Trace::call_dict_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  if (self->type == known().mappingproxy && name == "copy") stop("mapping-proxy", "a proxy of a dict is copied");   // what type comes of it is not known any more
  if (name == "items") return make_view(View::What::items, self);
  if (name == "keys") return make_view(View::What::keys, self);
  if (name == "values") return make_view(View::What::values, self);
  if (name == "get" || name == "pop" || name == "setdefault") {
    if (!args.count) stop("unknown-c-function", "dict." + std::string(name) + "() is called with its key as a keyword");
    PyObject* k = key_of(args[0]);
    if (!k) return nullptr;
    Value* found = dict_get(self, k);
    Value* other = args.count > 1 ? args[1] : args.keyword_count ? args.keywords[0].second : nullptr;
    if (name == "get") return found ? found : other ? other : none_;
    if (name == "setdefault") {
      if (found) return found;
      dict_set(self, k, other ? other : none_);
      return other ? other : none_;
    }
    if (!found) return other ? other : raise(make_exception(PyExc_KeyError, {args[0]}));
    dict_delete(self, k);
    return found;
  }
  if (name == "update") {
    if (args.count && !dict_update(self, args[0], false)) return nullptr;
    for (size_t i = 0; i < args.keyword_count; ++i) dict_set(self, args.keywords[i].first, args.keywords[i].second);
    return none_;
  }
  if (name == "copy" || name == "__copy__") {
    Value* d = make_object(self->type);
    body<Mapping>(d).default_factory = body<Mapping>(self).default_factory;
    for (PyObject* k : keys_of(self)) dict_set(d, k, dict_get(self, k));
    return d;
  }
  if (name == "clear") { dict_load(self); PyDict_Clear(body<Mapping>(self).items); ++body<Mapping>(self).changes; mark_changed(self); return none_; }
  if (name == "__missing__" && PyType_IsSubtype(self->type, known().defaultdict)) {
    Value* factory = body<Mapping>(self).default_factory;
    if (!factory || is_constant(factory, Py_None)) return raise(make_exception(PyExc_KeyError, {args[0]}));
    PyObject* k = key_of(args[0]);
    Value* made = k ? call(factory, {}) : nullptr;
    if (made) dict_set(self, k, made);
    return made;
  }
  if (name == "popitem") {
    auto keys = keys_of(self);
    if (keys.empty()) return raise(PyExc_KeyError, self->type == known().ordered_dict ? "dictionary is empty" : "popitem(): dictionary is empty");
    Value* last = args.count ? args[0] : args.keyword_count ? args.keywords[0].second : nullptr;
    const int from_end = last ? truth(last) : 1;
    if (from_end < 0) return nullptr;
    const bool first = self->type != &PyDict_Type && !from_end;
    PyObject* k = keep(Py_NewRef(first ? keys.front() : keys.back()));
    Value* v = dict_get(self, k);
    dict_delete(self, k);
    return make_tuple({value_of_key(k), v});
  }
  if (name == "move_to_end") {
    if (!args.count) stop("unknown-c-function", "OrderedDict.move_to_end() is called with its key as a keyword");
    PyObject* k = key_of(args[0]);
    if (!k) return nullptr;
    Value* v = dict_get(self, k);
    if (!v) return raise(make_exception(PyExc_KeyError, {args[0]}));
    bool last = true;
    if (args.count > 1) last = truth(args[1]) == 1;
    if (args.keyword_count) last = truth(args.keywords[0].second) == 1;
    if (last) { dict_delete(self, k); dict_set(self, k, v); return none_; }
    std::vector<std::pair<PyObject*, Value*>> rest;
    for (PyObject* other : keys_of(self)) if (PyObject_RichCompareBool(other, k, Py_EQ) != 1) rest.emplace_back(keep(Py_NewRef(other)), dict_get(self, other));
    keep(Py_NewRef(k));
    PyDict_Clear(body<Mapping>(self).items);
    ++body<Mapping>(self).changes;
    dict_set(self, k, v);
    for (auto& [other, x] : rest) dict_set(self, other, x);
    return none_;
  }
  *known_method = false;
  return nullptr;
}

Value* Trace::call_set_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  const bool frozen = self->kind == Kind::constant || self->type == &PyFrozenSet_Type;
  if (name == "add" || name == "discard" || name == "remove") {
    PyObject* k = key_of(args[0]);
    if (!k) return nullptr;
    if (name == "add") { set_add(self, k); return none_; }
    if (!set_discard(self, k) && name == "remove") return raise(make_exception(PyExc_KeyError, {args[0]}));
    return none_;
  }
  if (name == "pop") {
    auto keys = keys_of(self);
    if (keys.empty()) return raise(PyExc_KeyError, "pop from an empty set");
    if (self->real && keys.size() > 1) stop("set-order", "an item is popped from a set that existed before the call");
    PyObject* k = keep(PySet_Pop(PySet_New(body<Mapping>(self).order)));
    set_discard(self, k);
    return value_of_key(k);
  }
  if (name == "clear") { for (PyObject* k : keys_of(self)) set_discard(self, k); return none_; }
  auto keys_in = [&](Value* v, std::vector<PyObject*>* keys) {
    force(v);
    if (v->kind == Kind::set) { for (PyObject* k : keys_of(v)) keys->push_back(k); return true; }
    std::vector<Value*> all;
    if (!unpack(v, &all)) return false;
    for (Value* x : all) { PyObject* k = key_of(x); if (!k) return false; keys->push_back(k); }
    return true;
  };
  static constexpr std::string_view names[] = {"copy", "union", "intersection", "difference", "symmetric_difference", "update", "intersection_update", "difference_update", "symmetric_difference_update"};
  if (std::find(std::begin(names), std::end(names), name) != std::end(names)) {
    std::vector<PyObject*> mine;
    if (!keys_in(self, &mine)) return nullptr;
    const bool in_place = name == "update" || name.ends_with("_update");
    // Copies as Python makes them, so that the order of the result is what eager's would be.
    const bool untouched = self->kind == Kind::set && self->real && !self->is_changed;
    if (untouched) guard(self->source, GuardKind::dict_keys, keep(PySequence_Tuple(self->real)));
    PyObject* result = keep(PySet_New(untouched ? self->real : self->kind == Kind::set ? body<Mapping>(self).order : nullptr));
    for (PyObject* k : mine) PySet_Add(result, k);
    for (size_t i = 0; i < args.count; ++i) {
      std::vector<PyObject*> theirs;
      if (!keys_in(args[i], &theirs)) return nullptr;
      PyObject* other = keep(PySet_New(nullptr));
      for (PyObject* k : theirs) PySet_Add(other, k);
      PyObject* next = name == "update" || name == "union" ? PyNumber_Or(result, other)
                       : name.starts_with("intersection") ? PyNumber_And(result, other)
                       : name.starts_with("difference") ? PyNumber_Subtract(result, other) : PyNumber_Xor(result, other);
      result = keep(next);
    }
    Value* into = in_place ? self : make_set();
    if (in_place) {
      for (PyObject* k : mine) if (PySet_Contains(result, k) != 1) set_discard(self, k);
    }
    PyObject* iterator = keep(PyObject_GetIter(result));
    while (PyObject* k = PyIter_Next(iterator)) set_add(into, keep(k));
    if (!in_place && frozen) into->type = &PyFrozenSet_Type;
    return in_place ? none_ : into;
  }
  if (name == "issubset" || name == "issuperset" || name == "isdisjoint") {
    std::vector<PyObject*> mine, theirs;
    if (!keys_in(self, &mine) || !keys_in(args[0], &theirs)) return nullptr;
    PyObject *a = keep(PySet_New(nullptr)), *b = keep(PySet_New(nullptr));
    for (PyObject* k : mine) PySet_Add(a, k);
    for (PyObject* k : theirs) PySet_Add(b, k);
    if (name == "isdisjoint") { PyObject* both = keep(PyNumber_And(a, b)); return boolean(PySet_GET_SIZE(both) == 0); }
    return constant_steal(PyObject_RichCompare(a, b, name == "issubset" ? Py_LE : Py_GE));
  }
  *known_method = false;
  return nullptr;
}

Value* Trace::call_container_method(PyTypeObject*, const char* name, Value* self, const Args& args, bool* is_known) {
  *is_known = true;
  force(self);
  bool known_method = true;
  Value* r = nullptr;
  switch (self->kind) {
    case Kind::list: case Kind::tuple: r = call_list_method(name, self, args, &known_method); break;
    case Kind::dict: r = call_dict_method(name, self, args, &known_method); break;
    case Kind::set: r = call_set_method(name, self, args, &known_method); break;
    case Kind::generator: {
      const std::string_view n = name;
      if (n == "send" || n == "__next__") {
        Value* v = resume_generator(self, args.count ? args[0] : none_, nullptr);
        if (v || raised_) return v;
        Value* result = last_return_;
        return raise(make_exception(PyExc_StopIteration, is_constant(result, Py_None) ? std::vector<Value*>{} : std::vector<Value*>{result}));
      }
      if (n == "throw") {
        Value* e = args[args.count > 1 && !is_constant(args[1], Py_None) ? 1 : 0];
        const auto is_exception = [](PyTypeObject* t) { return PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) != 0; };
        if (kind(e) == Kind::klass && is_exception(reinterpret_cast<PyTypeObject*>(e->real))) e = call(e, {});
        if (!e) return nullptr;
        if (kind(e) != Kind::object || !is_exception(e->type)) stop("unknown-c-function", "throw() of a generator is given " + describe(e) + " for an exception", "give it an exception");
        Value* v = resume_generator(self, nullptr, e);
        if (v || raised_) return v;
        Value* result = last_return_;
        return raise(make_exception(PyExc_StopIteration, is_constant(result, Py_None) ? std::vector<Value*>{} : std::vector<Value*>{result}));
      }
      if (n == "close") {
        if (body<Generator>(self).is_done || !body<Generator>(self).is_started) { body<Generator>(self).is_done = true; return none_; }
        Value* v = resume_generator(self, nullptr, make_exception(PyExc_GeneratorExit, {}));
        if (v) return raise(PyExc_RuntimeError, std::string(self->type->tp_name) + " ignored GeneratorExit");
        if (raised_is(PyExc_GeneratorExit) || raised_is(PyExc_StopIteration)) take_raised();
        return raised_ ? nullptr : none_;
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
          case Iterator::What::sequence: n = items(i.base).size(); break;
          case Iterator::What::constants: case Iterator::What::mapping: n = i.parts.size(); break;
          case Iterator::What::real_sequence: n = i.size; break;
          default: known_method = false;
        }
        if (!known_method) break;
        return integer(i.is_done || i.position > n ? 0 : static_cast<long long>(n - i.position));
      }
      if (std::string_view(name) == "__next__") {
        bool done = false;
        Value* v = next(self, &done);
        return done ? raise(make_exception(PyExc_StopIteration, {})) : v;
      }
      known_method = false;
      break;
    }
    case Kind::view: {
      if (std::string_view(name) == "__iter__") return iter(self);
      if (std::string_view(name) == "isdisjoint") { Value* s = make_set(); for (PyObject* k : keys_of(body<View>(self).dict)) set_add(s, k); return call_set_method(name, s, args, &known_method); }
      known_method = false;
      break;
    }
    default: known_method = false;
  }
  *is_known = known_method;
  return r;
}

}  // namespace cutaway::capture
