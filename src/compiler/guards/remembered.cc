#include "compiler/guards/remembered.h"

#include <cstddef>
#include <optional>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::guards {
namespace {
using bytecode::ObjectRef;

// The object is C's, and its fields have no names outside. Where they lie is found with caches of our own whose numbers are known, so that another version of
// Python with other fields is either understood or left alone.
struct Layout {
  size_t hits = 0, misses = 0, limit = 0, typed = 0, results = 0;   // in the function
  size_t result = 0;                                                 // in an entry of a cache with a limit
};

template <class T> T& field(PyObject* o, size_t offset) { return *reinterpret_cast<T*>(reinterpret_cast<char*>(o) + offset); }

template <class T> std::optional<size_t> only_place(PyObject* o, T wanted) {
  std::optional<size_t> at;
  const auto size = static_cast<size_t>(Py_TYPE(o)->tp_basicsize);
  for (size_t i = sizeof(PyObject); i + sizeof(T) <= size; i += alignof(T)) {
    if (field<T>(o, i) != wanted) continue;
    if (at) return std::nullopt;
    at = i;
  }
  return at;
}

PyObject* results_of(PyObject* cached, size_t length) {
  struct Search { PyObject* own; size_t length; PyObject* found; int count; } search{nullptr, length, nullptr, 0};
  PyObject** own = _PyObject_GetDictPtr(cached);
  search.own = own ? *own : nullptr;
  const auto visit = [](PyObject* o, void* data) -> int {
    auto& s = *static_cast<Search*>(data);
    if (PyDict_CheckExact(o) && o != s.own && static_cast<size_t>(PyDict_GET_SIZE(o)) == s.length) { s.found = o; ++s.count; }
    return 0;
  };
  if (!Py_TYPE(cached)->tp_traverse) return nullptr;
  Py_TYPE(cached)->tp_traverse(cached, visit, &search);
  return search.count == 1 ? search.found : nullptr;
}

constexpr const char* kProbes = R"(
import functools
def make(limit, typed):
    def f(*a, **k): return [a, k]
    return functools.lru_cache(limit, typed)(f)
bounded, typed, endless = make(1013, False), make(1013, True), make(None, False)
for i in range(41): bounded("k", i)
for i in range(37): bounded("k", 0)
typed(1); typed(1, a=2.5); endless(1); endless("t", b=3); endless(2.5)
samples = [(bounded, ("k", 7), {}), (typed, (1,), {}), (typed, (1,), {"a": 2.5}), (endless, (1,), {}), (endless, ("t",), {"b": 3}), (endless, (2.5,), {})]
expected = [f(*a, **k) for f, a, k in samples]
)";

ObjectRef key_with(const Layout& l, PyObject* cached, PyObject* positional, const std::vector<std::pair<PyObject*, PyObject*>>& keywords) {
  const bool typed = field<int>(cached, l.typed) != 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(positional), named = static_cast<Py_ssize_t>(keywords.size());
  if (!typed && !named) {
    PyObject* first = count == 1 ? PyTuple_GET_ITEM(positional, 0) : nullptr;
    return ObjectRef::borrow(first && (PyUnicode_CheckExact(first) || PyLong_CheckExact(first)) ? first : positional);
  }
  ObjectRef all = ObjectRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; all && i < count; ++i) PyList_Append(all.get(), PyTuple_GET_ITEM(positional, i));
  if (named) {
    // The mark between positions and names is an object of the module's own, and the cache refers to it.
    struct Search { PyObject* found; int count; } search{nullptr, 0};
    const auto visit = [](PyObject* o, void* data) -> int {
      auto& s = *static_cast<Search*>(data);
      if (Py_TYPE(o) == &PyBaseObject_Type && o != s.found) { s.found = o; ++s.count; }
      return 0;
    };
    PyObject* mark = nullptr;
    static PyObject* const a_cache = [] {   // of which nothing is remembered, so that no result is mistaken for it
      PyObject* m = PyImport_ImportModule("functools");
      PyObject* make = m ? PyObject_GetAttrString(m, "lru_cache") : nullptr;
      PyObject* made = make ? PyObject_CallOneArg(make, reinterpret_cast<PyObject*>(&PyList_Type)) : nullptr;
      Py_XDECREF(make);
      Py_XDECREF(m);
      if (!made) PyErr_Clear();
      return made;
    }();
    if (!a_cache) return {};
    Py_TYPE(a_cache)->tp_traverse(a_cache, visit, &search);
    if (search.count == 1) mark = search.found;
    if (!mark) return {};
    PyList_Append(all.get(), mark);
    for (const auto& [name, value] : keywords) { PyList_Append(all.get(), name); PyList_Append(all.get(), value); }
  }
  if (typed) {
    for (Py_ssize_t i = 0; i < count; ++i) PyList_Append(all.get(), reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(positional, i))));
    for (const auto& [name, value] : keywords) PyList_Append(all.get(), reinterpret_cast<PyObject*>(Py_TYPE(value)));
  }
  return ObjectRef::steal(PyList_AsTuple(all.get()));
}

PyObject* find_with(const Layout& l, PyObject* cached, PyObject* key) {
  PyObject* results = field<PyObject*>(cached, l.results);
  if (!results || !PyDict_CheckExact(results)) return nullptr;
  PyObject* found = PyDict_GetItemWithError(results, key);
  if (!found) { PyErr_Clear(); return nullptr; }
  return field<Py_ssize_t>(cached, l.limit) < 0 ? found : field<PyObject*>(found, l.result);
}

std::optional<Layout> probe() {
  const ObjectRef space = ObjectRef::steal(PyDict_New());
  PyDict_SetItemString(space.get(), "__builtins__", PyEval_GetBuiltins());
  const ObjectRef ran = ObjectRef::steal(PyRun_String(kProbes, Py_file_input, space.get(), space.get()));
  if (!ran) { PyErr_Clear(); return std::nullopt; }
  const auto named = [&](const char* name) { return PyDict_GetItemString(space.get(), name); };
  PyObject *bounded = named("bounded"), *typed = named("typed"), *endless = named("endless");
  Layout l;
  // One sample has asked the first cache once more.
  const auto hits = only_place<Py_ssize_t>(bounded, 38), misses = only_place<Py_ssize_t>(bounded, 41), limit = only_place<Py_ssize_t>(bounded, 1013);
  PyObject* results = results_of(bounded, 41);
  const auto place = results ? only_place<PyObject*>(bounded, results) : std::nullopt;
  if (!hits || !misses || !limit || !place) return std::nullopt;
  l.hits = *hits, l.misses = *misses, l.limit = *limit, l.results = *place;
  int differences = 0;
  for (size_t i = sizeof(PyObject); i + sizeof(int) <= static_cast<size_t>(Py_TYPE(bounded)->tp_basicsize); i += alignof(int))
    if (field<int>(bounded, i) == 0 && field<int>(endless, i) == 0 && field<int>(typed, i) == 1 && i != l.hits && i != l.misses) { l.typed = i; ++differences; }
  if (differences != 1 || field<Py_ssize_t>(endless, l.limit) >= 0) return std::nullopt;
  PyObject *samples = named("samples"), *expected = named("expected");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); ++i) {
    PyObject *sample = PyList_GET_ITEM(samples, i), *wanted = PyList_GET_ITEM(expected, i), *name = nullptr, *value = nullptr;
    PyObject* cached = PyTuple_GET_ITEM(sample, 0);
    std::vector<std::pair<PyObject*, PyObject*>> keywords;
    Py_ssize_t at = 0;
    while (PyDict_Next(PyTuple_GET_ITEM(sample, 2), &at, &name, &value)) keywords.emplace_back(name, value);
    const ObjectRef key = key_with(l, cached, PyTuple_GET_ITEM(sample, 1), keywords);
    if (!key) return std::nullopt;
    if (i == 0) {
      PyObject* entry = PyDict_GetItemWithError(results, key.get());
      const auto result = entry ? only_place<PyObject*>(entry, wanted) : std::nullopt;
      if (!result) { PyErr_Clear(); return std::nullopt; }
      l.result = *result;
    }
    if (find_with(l, cached, key.get()) != wanted) return std::nullopt;
  }
  return l;
}

const std::optional<Layout>& layout() {
  static const std::optional<Layout> found = probe();
  return found;
}
}  // namespace

bool knows_caches() { return layout().has_value(); }

PyObject* key_of_call(PyObject* cached, PyObject* positional, const std::vector<std::pair<PyObject*, PyObject*>>& keywords) {
  return layout() ? key_with(*layout(), cached, positional, keywords).release() : nullptr;
}

PyObject* remembered(PyObject* cached, PyObject* key) { return layout() ? find_with(*layout(), cached, key) : nullptr; }

bool has_room(PyObject* cached) {
  if (!layout()) return false;
  const Py_ssize_t limit = field<Py_ssize_t>(cached, layout()->limit);
  PyObject* results = field<PyObject*>(cached, layout()->results);
  return limit < 0 || (results && PyDict_CheckExact(results) && PyDict_GET_SIZE(results) < limit);
}

void counts_as_miss(PyObject* cached) {
  if (layout()) --field<Py_ssize_t>(cached, layout()->hits);
}

}  // namespace cutaway::guards
