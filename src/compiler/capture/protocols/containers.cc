// Methods of the containers that the trace models.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compiler/capture/trace.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
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

// Objects with their own order: the comparisons that list.sort makes of so few items, in its order, each inlined. What raises leaves the items where they are.
bool Trace::sort_by_comparisons(std::vector<Value*>& all, const std::vector<Value*>& keys, bool reverse) {
  if (all.size() >= 64) stop("sort", "64 or more objects are sorted by comparisons of their own", "sort by a key that is a number or text");
  std::vector<std::pair<Value*, Value*>> rows;   // key, value
  for (size_t i = 0; i < all.size(); ++i) rows.emplace_back(keys[i], all[i]);
  if (reverse) std::reverse(rows.begin(), rows.end());   // twice, so that what is equal keeps its order
  bool is_uniform = true;
  for (Value* k : keys) is_uniform = is_uniform && type_of(k) == type_of(keys[0]);
  const auto is_less = [&](const auto& a, const auto& b) {
    if (is_uniform && is_user_class(a.first->type)) {   // Python asks the slot of their class, and begins anew with both sides where that does not know
      Value* said = dunder(a.first, "__lt__", b.first);
      if (!said && raised_) return -1;
      if (said && !is_constant(said, Py_NotImplemented)) return truth(said);
    }
    Value* less = compare(Py_LT, a.first, b.first);
    return less ? truth(less) : -1;
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
  PyObject *plain = keep(PyList_New(0)), *order = keep(PyList_New(0));
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* k = to_plain(keys[i]);
    if (k && keys[i]->kind == Kind::constant && is_user_class(keys[i]->type) && own_operator(keys[i]->type, keep(PyUnicode_InternFromString("__lt__")))) k = nullptr;   // of an enumeration
    if (!k) return sort_by_comparisons(all, keys, reverse);
    if (frames::SizeLog* log = frames::size_log()) log->used(k);   // their order is not written down
    PyList_Append(plain, k);
    PyList_Append(order, integer(static_cast<long long>(i))->real);
  }
  // Python sorts the places by these keys; where it fails it leaves them in the order that the list would have.
  PyObject* key_at = keep(PyObject_GetAttr(plain, names().__getitem__));
  static PyObject* const keywords = Py_BuildValue("(ss)", "key", "reverse");
  PyObject* given[] = {order, key_at, reverse ? Py_True : Py_False};
  static PyObject* const sort = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "sort");
  PyObject* done = PyObject_Vectorcall(sort, given, 1, keywords);
  Py_XDECREF(done);
  if (!done) raise_python();
  std::vector<Value*> sorted;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); ++i) sorted.push_back(all[static_cast<size_t>(PyLong_AsSsize_t(PyList_GET_ITEM(order, i)))]);
  all = std::move(sorted);
  return done != nullptr;
}

void Trace::append(Value* list, Value* x, bool left) {
  auto& all = items(list);
  Sequence& s = body<Sequence>(list);
  if (s.limit == 0) return;
  all.insert(left ? all.begin() : all.end(), x);
  if (s.limit >= 0 && all.size() > static_cast<size_t>(s.limit)) all.erase(left ? all.end() - 1 : all.begin());
  ++s.changes;
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
  if (name == "append") { append(self, args[0]); mark_changed(self); return none_; }
  if (name == "extend") return extend(self, args[0]) ? none_ : nullptr;
  if (name == "pop") {
    Py_ssize_t i = -1;
    if (args.count && !argument_number(args[0], &i)) return nullptr;
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
    if (!argument_number(args[0], &i)) return nullptr;
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (deque && body<Sequence>(self).limit >= 0 && size >= body<Sequence>(self).limit) return raise(PyExc_IndexError, "deque already at its maximum size");
    if (i < 0) i = std::max<Py_ssize_t>(0, i + size);
    all.insert(all.begin() + std::min(i, size), args[1]);
    mark_changed(self);
    return none_;
  }
  if (name == "clear") { all.clear(); mark_changed(self); return none_; }
  if (name == "copy" || name == "__copy__") return make_list(all);
  if (name == "reverse") { std::reverse(all.begin(), all.end()); mark_changed(self); return none_; }
  if (name == "index" || name == "count" || name == "remove") {
    Py_ssize_t start = 0, stop_at = PY_SSIZE_T_MAX;
    auto bound = [&](Value* v, Py_ssize_t* n) {
      if (index_number(v, n, nullptr)) return *n = std::max(*n, PY_SSIZE_T_MIN / 2), true;
      if (raised_is(PyExc_TypeError) && v->kind != Kind::tensor && !lookup_type(v->type, names().__index__)) { take_raised(); raise(PyExc_TypeError, "slice indices must be integers or have an __index__ method"); }
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
      const int same = equal(all[static_cast<size_t>(i)], args[0]);
      if (same < 0) return nullptr;
      if (static_cast<Py_ssize_t>(all.size()) != size || body<Sequence>(self).changes != changes) stop("container-changed", "a comparison changes the list or deque whose items it compares");
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
    std::vector<Value*> sorted = std::exchange(all, {});   // keys and comparisons see an empty list
    mark_changed(self);
    const bool ok = sort_values(sorted, key, reverse, tail, self);
    const bool was_changed = !all.empty();
    all = std::move(sorted);
    if (!ok) return nullptr;
    return was_changed ? raise(PyExc_ValueError, "list modified during sort") : none_;
  }
  *known_method = false;
  return nullptr;
}

Value* Trace::call_dict_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  if (self->type == known().mappingproxy) {   // its methods are the dict's
    if (Value* dict = behind_proxy(self); dict != self) return call_method(dict, std::string(name).c_str(), args);
    if (name == "copy") stop("mapping-proxy", "a proxy of a dict is copied");   // what type comes of it is not known any more
  }
  if (is_user_class(self->type) && PyType_IsSubtype(self->type, known().ordered_dict) && (name == "pop" || name == "setdefault" || name == "popitem" || name == "move_to_end" || name == "clear"))
    for (PyObject* asked : {names().__getitem__, names().__setitem__, names().__delitem__, names().__contains__})
      if (own_method(self->type, asked)) stop("container-subclass", "OrderedDict." + std::string(name) + " is called on an instance of a class below, whose own methods it asks");
  if (name == "items") return make_view(View::What::items, self);
  if (name == "keys") return make_view(View::What::keys, self);
  if (name == "values") return make_view(View::What::values, self);
  if (name == "get" || name == "pop" || name == "setdefault") {
    if (!args.count) stop("unknown-c-function", "dict." + std::string(name) + "() is called with its key as a keyword argument");
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
    if (args.count && !dict_update(self, args[0])) return nullptr;
    return update_by_keywords(self, args) ? none_ : nullptr;
  }
  if (name == "copy" || name == "__copy__") {
    const bool is_default = PyType_IsSubtype(self->type, known().defaultdict), is_ordered = PyType_IsSubtype(self->type, known().ordered_dict);
    if (is_user_class(self->type) && (is_default || is_ordered)) {   // these make another one of the class; dict makes a dict
      Value* klass = wrap_constant_object(reinterpret_cast<PyObject*>(self->type));
      if (is_default) return call(klass, {body<Mapping>(self).default_factory ? body<Mapping>(self).default_factory : none_, self});
      Value* d = call(klass, {});
      for (PyObject* k : keys_of(self)) if (!d || !store_subscript(d, value_of_key(k), dict_get(self, k))) return nullptr;
      return d;
    }
    Value* d = is_default || is_ordered ? make_object(self->type) : make_dict();
    body<Mapping>(d).default_factory = body<Mapping>(self).default_factory;
    if (is_user_class(self->type)) return dict_update(d, self) ? d : nullptr;   // by its own methods where it iterates in its own way
    for (PyObject* k : keys_of(self)) dict_set(d, k, dict_get(self, k));
    return d;
  }
  if (name == "clear") { dict_load(self); PyDict_Clear(body<Mapping>(self).items); ++body<Mapping>(self).changes; mark_changed(self); return none_; }
  if (name == "__missing__" && PyType_IsSubtype(self->type, known().defaultdict)) {
    Value* factory = body<Mapping>(self).default_factory;
    if (!factory || is_constant(factory, Py_None)) return raise(make_exception(PyExc_KeyError, {args[0]}));
    Value* made = call(factory, {});
    return made && store_subscript(self, args[0], made) ? made : nullptr;
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
    if (!args.count) stop("unknown-c-function", "OrderedDict.move_to_end() is called with its key as a keyword argument");
    PyObject* k = key_of(args[0]);
    if (!k) return nullptr;
    Value* v = dict_get(self, k);
    if (!v) return raise(make_exception(PyExc_KeyError, {args[0]}));
    Value* given = args.count > 1 ? args[1] : args.keyword_count ? args.keywords[0].second : nullptr;
    const int last = given ? truth(given) : 1;
    if (last < 0) return nullptr;
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

// Beside its items a set of the trace has a real set of their keys, which the real method is called on: so its order is what eager's would be.
Value* Trace::call_set_method(std::string_view name, Value* self, const Args& args, bool* known_method) {
  if (name == "add" || name == "discard" || name == "remove") {
    PyObject* k = name == "add" ? key_of(args[0]) : key_to_find(args[0]);
    if (!k) return nullptr;
    if (name == "add") { set_add(self, k); return none_; }
    if (!set_discard(self, k) && name == "remove") return raise(make_exception(PyExc_KeyError, {args[0]}));
    return none_;
  }
  if (name == "pop") {
    set_load(self);
    Mapping& m = body<Mapping>(self);
    if (!PySet_GET_SIZE(m.order)) return raise(PyExc_KeyError, "pop from an empty set");
    if (self->real && PySet_GET_SIZE(m.order) > 1) stop("set-order", "an item is popped from a set that existed before the call");
    PyObject* k = keep(PySet_Pop(m.order));
    PyDict_DelItem(m.items, k);
    mark_changed(self);
    return value_of_key(k);
  }
  if (name == "clear") { for (PyObject* k : keys_of(self)) set_discard(self, k); return none_; }
  const auto is_set = [&](Value* v) { force(v); return v->kind == Kind::set || (v->kind == Kind::constant && PyFrozenSet_Check(v->real)); };
  const auto real_of = [&](Value* v) -> PyObject* {
    if (v->kind == Kind::constant) return v->real;
    set_load(v);
    if (!v->real || v->is_changed) return body<Mapping>(v).order;
    guard(v->source, GuardKind::dict_keys, keep(PySequence_Tuple(keep(PySet_Type.tp_iter(v->real)))));
    return v->real;
  };
  if (name == "update" || name == "difference_update") {   // item by item, and what came before an error stays
    const bool adds = name == "update";
    for (size_t i = 0; i < args.count; ++i) {
      if (is_set(args[i])) {
        if (!change_set(name, self, {real_of(args[i])})) return nullptr;
      } else if (!for_each(args[i], [&](Value* x) {
                   PyObject* k = key_of(x);
                   if (k && adds) set_add(self, k);
                   else if (k) set_discard(self, k);
                   return k != nullptr;
                 })) return nullptr;
    }
    return none_;
  }
  if ((name == "issuperset" || name == "isdisjoint") && !is_set(args[0])) {   // up to the first item that decides
    const bool decides = name == "isdisjoint";
    bool is_decided = false;
    const bool ok = for_each(args[0], [&](Value* x) {
      PyObject* k = key_of(x);
      if (k && self->kind == Kind::set) set_load(self);
      if (k) is_decided = (PySet_Contains(self->kind == Kind::set ? body<Mapping>(self).order : self->real, k) == 1) == decides;
      check_keys();
      return k && !is_decided;
    });
    return ok || is_decided ? boolean(!is_decided) : nullptr;
  }
  static constexpr std::string_view names[] = {"copy", "__copy__", "union", "intersection", "difference", "symmetric_difference", "intersection_update", "symmetric_difference_update", "issubset", "issuperset", "isdisjoint"};
  if (std::find(std::begin(names), std::end(names), name) == std::end(names)) { *known_method = false; return nullptr; }
  PyObject* own = real_of(self);
  const Py_ssize_t size = PySet_GET_SIZE(own);
  std::vector<PyObject*> others;
  for (size_t i = 0; i < args.count; ++i) {
    if (is_set(args[i])) { others.push_back(real_of(args[i])); continue; }
    if (args[i]->kind == Kind::dict && args[i]->type == &PyDict_Type) { dict_load(args[i]); others.push_back(body<Mapping>(args[i]).items); continue; }
    PyObject* keys = keep(PyList_New(0));
    if (!for_each(args[i], [&](Value* x) { PyObject* k = key_of(x); if (k) PyList_Append(keys, k); return k != nullptr; })) return nullptr;
    others.push_back(keys);
  }
  if (PySet_GET_SIZE(real_of(self)) != size) stop("container-changed", "a set is changed by what it is combined with");
  if (name.ends_with("_update")) return change_set(name, self, others);
  const bool frozen = self->kind == Kind::constant || PyType_IsSubtype(self->type, &PyFrozenSet_Type);
  if (frozen && (name == "copy" || name == "__copy__") && !is_user_class(self->type)) return self;
  PyObject* result = call_real_method(own, name, others);
  check_keys();
  if (!result) return raise_python();
  if (!PyAnySet_Check(result)) return constant_steal(result);
  Value* made = set_of_keys(result);
  if (frozen) made->type = &PyFrozenSet_Type;
  return made;
}

// A method that changes a set in place, and its items after that.
Value* Trace::change_set(std::string_view name, Value* self, const std::vector<PyObject*>& others) {
  Mapping& m = body<Mapping>(self);
  set_load(self);
  PyObject* done = call_real_method(m.order, name, others);
  check_keys();
  if (!done) return raise_python();
  Py_DECREF(done);
  for (PyObject *all = keep(PySequence_Tuple(m.items)), **k = &PyTuple_GET_ITEM(all, 0), **end = k + PyTuple_GET_SIZE(all); k != end; ++k)
    if (PySet_Contains(m.order, *k) != 1) PyDict_DelItem(m.items, *k);
  for (PyObject* it = keep(PyObject_GetIter(m.order)); PyObject* k = PyIter_Next(it);) {
    keep(k);
    if (PyDict_Contains(m.items, k) == 1) continue;
    PyObject* number = PyLong_FromVoidPtr(value_of_key(k));
    PyDict_SetItem(m.items, k, number);
    Py_DECREF(number);
  }
  mark_changed(self);
  return none_;
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
      if (std::string_view(name) == "isdisjoint" && body<View>(self).what == View::What::keys) { Value* s = make_set(); for (PyObject* k : keys_of(body<View>(self).dict)) set_add(s, k); return call_set_method(name, s, args, &known_method); }
      known_method = false;
      break;
    }
    default: known_method = false;
  }
  *is_known = known_method;
  return r;
}

}  // namespace cutaway::capture
