#include "compiler/capture/protocols/argument_counts.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

constexpr size_t kAny = SIZE_MAX;

// "name($self, a, b=None, /, *, c=0)\n--\n\n…"; false where a docstring has no such line.
bool read_signature(const char* doc, ArgumentCounts* into) {
  if (!doc) return false;
  const std::string_view text(doc);
  const size_t open = text.find('('), end = text.find(")\n--\n\n");
  if (open == std::string_view::npos || end == std::string_view::npos || open > end || text.substr(0, open).find_first_of(" \n") != std::string_view::npos) return false;
  ArgumentCounts found{.least = 0, .most = 0, .takes_any_keyword = false, .keywords = {}, .first_place = 0};
  bool only_keywords = false;
  size_t at = open + 1;
  while (at < end) {
    size_t stop = at;
    char quote = 0;
    for (int depth = 0; stop < end && (depth || quote || text[stop] != ','); ++stop) {
      const char c = text[stop];
      if (quote ? c == quote && text[stop - 1] != '\\' : c == '\'' || c == '"') quote = quote ? 0 : c;
      else if (!quote) depth += c == '(' || c == '<' ? 1 : c == ')' || c == '>' ? -1 : 0;
    }
    std::string_view part = text.substr(at, stop - at);
    at = stop + 1;
    part.remove_prefix(std::min(part.find_first_not_of(" \n"), part.size()));   // long ones have several lines
    if (part.find_first_of("[]") != std::string_view::npos) return false;   // optional groups
    if (part.empty() || part.front() == '$') continue;
    if (part == "/") { found.keywords.clear(); found.first_place = found.most; continue; }
    if (part == "*") { only_keywords = true; continue; }
    if (part.starts_with("**")) { found.takes_any_keyword = true; continue; }
    if (part.front() == '*') { found.most = kAny; only_keywords = true; continue; }
    const size_t equals = part.find('=');
    found.keywords.emplace_back(part.substr(0, equals));
    if (only_keywords) continue;
    if (found.most != kAny) ++found.most;
    if (equals == std::string_view::npos) ++found.least;
  }
  *into = std::move(found);
  return true;
}

struct Row { const char *owner, *name; size_t least, most; bool takes_any_keyword; std::vector<std::string> keywords; };
// What has neither a text signature nor flags that say it.
const Row kMethods[] = {
    {"dict", "update", 0, 1, true, {}},
    {"collections.OrderedDict", "update", 0, 1, true, {}},
    {"collections.deque", "rotate", 0, 1, false, {}},
    {"collections.deque", "insert", 2, 2, false, {}},
    {"collections.deque", "index", 1, 3, false, {}},
    {"generator", "throw", 1, 3, false, {}},
    {"coroutine", "throw", 1, 3, false, {}},
    {"builtins", "max", 1, kAny, false, {"key", "default"}},
    {"builtins", "min", 1, kAny, false, {"key", "default"}},
    {"builtins", "iter", 1, 2, false, {}},
    {"builtins", "next", 1, 2, false, {}},
    {"builtins", "getattr", 2, 3, false, {}},
    {"builtins", "vars", 0, 1, false, {}},
    {"builtins", "dir", 0, 1, false, {}},
};
const std::unordered_map<PyTypeObject*, ArgumentCounts>& types() {
  static const auto* const table = [] {
    const KnownTypes& k = known();
    return new std::unordered_map<PyTypeObject*, ArgumentCounts>{
        {&PyList_Type, {0, 1, false, {}}}, {&PyTuple_Type, {0, 1, false, {}}}, {&PySet_Type, {0, 1, false, {}}}, {&PyFrozenSet_Type, {0, 1, false, {}}},
        {&PyDict_Type, {0, 1, true, {}}}, {&PyBool_Type, {0, 1, false, {}}}, {&PySlice_Type, {1, 3, false, {}}}, {k.zip, {0, kAny, false, {"strict"}}},
        {k.enumerate, {1, 2, false, {"iterable", "start"}}}, {k.map, {2, kAny, false, {}}}, {k.filter, {2, 2, false, {}}}, {k.reversed, {1, 1, false, {}}}, {&PyRange_Type, {1, 3, false, {}}},
        {k.deque, {0, 2, false, {"iterable", "maxlen"}}}, {&PySuper_Type, {0, 2, false, {}}}, {k.mappingproxy, {1, 1, false, {"mapping"}}},
        {&PyMethod_Type, {2, 2, false, {}}}, {&PyStaticMethod_Type, {1, 1, false, {}}}, {&PyClassMethod_Type, {1, 1, false, {}}}};
  }();
  return *table;
}

ArgumentCounts of_method(const char* owner, const PyMethodDef* m) {
  ArgumentCounts found;
  if (read_signature(m->ml_doc, &found)) return found;
  for (const Row& row : kMethods)
    if (std::string_view(row.owner) == owner && std::string_view(row.name) == m->ml_name) return {row.least, row.most, row.takes_any_keyword, row.keywords, 0};
  if (m->ml_flags & METH_NOARGS) found.most = 0;
  if (m->ml_flags & METH_O) found.least = found.most = 1;
  found.takes_any_keyword = m->ml_flags & METH_KEYWORDS;
  return found;
}

// An object of the type that has nothing in it; null where none can be made here.
PyObject* sample_of(PyTypeObject* t) {
  static const auto* const samples = [] {
    auto* all = new std::unordered_map<PyTypeObject*, PyObject*>();
    PyObject* names = PyDict_New();
    PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins());
    PyObject* made = PyRun_String("[(_ for _ in ()), {}.keys(), {}.values(), {}.items(), iter([]), iter(()), iter({}), iter(set()), [], (), {}, set(), frozenset()]", Py_eval_input, names, names);
    for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(made); ++i) (*all)[Py_TYPE(PyList_GET_ITEM(made, i))] = PyList_GET_ITEM(made, i);
    if (!made) PyErr_Clear();
    Py_DECREF(names);
    return all;
  }();
  if (auto it = samples->find(t); it != samples->end()) return Py_NewRef(it->second);
  if (t != &PyBaseObject_Type && t != known().deque && t != known().ordered_dict && t != known().defaultdict) return nullptr;
  PyObject* made = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(t));
  if (!made) PyErr_Clear();
  return made;
}

}  // namespace

const ArgumentCounts& argument_counts(PyObject* callable) {
  static auto& cache = *new std::unordered_map<const void*, ArgumentCounts>();   // by what C defines, which is never freed
  static const ArgumentCounts anything;
  if (PyType_Check(callable)) {
    const auto it = types().find(reinterpret_cast<PyTypeObject*>(callable));
    return it == types().end() ? anything : it->second;
  }
  if (Py_TYPE(callable) == &PyWrapperDescr_Type) {
    const wrapperbase* w = reinterpret_cast<PyWrapperDescrObject*>(callable)->d_base;
    const auto [it, is_new] = cache.try_emplace(w);
    if (is_new) read_signature(w->doc, &it->second);
    return it->second;
  }
  const PyMethodDef* m = nullptr;
  const char* owner = "builtins";
  if (PyCFunction_Check(callable)) m = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  else if (Py_TYPE(callable) == &PyMethodDescr_Type) { m = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method; owner = PyDescr_TYPE(callable)->tp_name; }
  if (!m) return anything;
  const auto [it, is_new] = cache.try_emplace(m);
  if (is_new) it->second = of_method(owner, m);
  return it->second;
}

bool refuses(PyObject* callable, PyTypeObject* owner, size_t count, const std::vector<PyObject*>& keywords) {
  PyObject* self = owner ? sample_of(owner) : nullptr;
  if (owner && !self) return false;
  const size_t before = self ? 1 : 0;
  PyObject* args = PyTuple_New(static_cast<Py_ssize_t>(count + before));
  if (self) PyTuple_SET_ITEM(args, 0, self);
  PyObject* nothing = PyTuple_New(0);   // also for who wants something to iterate over
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(args, static_cast<Py_ssize_t>(i + before), Py_NewRef(i == 0 && callable == reinterpret_cast<PyObject*>(known().defaultdict) ? Py_None : nothing));
  PyObject* named = keywords.empty() ? nullptr : PyDict_New();
  for (PyObject* k : keywords) PyDict_SetItem(named, k, nothing);
  PyObject* result = PyObject_Call(callable, args, named);
  Py_DECREF(args);
  Py_DECREF(nothing);
  Py_XDECREF(named);
  if (result) { Py_DECREF(result); return false; }
  if (PyErr_ExceptionMatches(PyExc_TypeError)) return true;
  PyErr_Clear();
  return false;
}

// Functions of other packages check their arguments in ways of their own, and must not be called to find out.
static bool is_of_standard_library(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return true;
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(callable)->m_module;
  if (!module) return true;   // a method
  static PyObject* const library = PySys_GetObject("stdlib_module_names");
  const char* text = PyModule_Check(module) ? PyModule_GetName(module) : PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  const std::string_view name = text ? text : "";
  const std::string_view package = name.substr(0, name.find('.'));
  PyObject* first = PyUnicode_FromStringAndSize(package.data(), static_cast<Py_ssize_t>(package.size()));
  const bool is = first && library && PySequence_Contains(library, first) == 1;
  Py_XDECREF(first);
  PyErr_Clear();
  return is;
}

bool Calls::takes(PyObject* callable, PyTypeObject* owner, const Args& args) {
  if (!is_of_standard_library(callable)) return true;
  const ArgumentCounts& counts = argument_counts(callable);
  size_t named = 0;
  bool is_fine = true;
  std::vector<PyObject*> keywords;
  for (size_t i = 0; i < args.keyword_count; ++i) {
    keywords.push_back(args.keywords[i].first);
    const char* name = PyUnicode_AsUTF8(keywords.back());
    const auto at = std::find_if(counts.keywords.begin(), counts.keywords.end(), [&](const std::string& k) { return name && k == name; });
    if (at == counts.keywords.end()) { is_fine &= counts.takes_any_keyword; continue; }
    ++named;
    const size_t place = counts.first_place + static_cast<size_t>(at - counts.keywords.begin());
    if (counts.most != kAny && place < counts.most) is_fine &= args.count <= place;   // else it is given twice
  }
  PyErr_Clear();   // a name that is no text in UTF-8
  if (is_fine && args.count <= counts.most && args.count + named >= counts.least) return true;
  static PyObject* const sorted = PyDict_GetItemString(PyEval_GetBuiltins(), "sorted");   // it makes a list before it looks at keywords
  if (callable == sorted && args.count == 1 && values.kind(args[0]) == Kind::constant && !PySequence_Check(args[0]->real)) stop("unknown-c-function", "sorted() is called with keywords that it does not take");
  if (refuses(callable, owner, args.count, keywords)) { exceptions.raise_python(); return false; }
  stop("unknown-c-function", values.describe(values.constant_kind(callable)) + " is called with arguments that it does not take");
}

}  // namespace cutaway::capture
