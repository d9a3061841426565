#include "compiler/frames/marks.h"

#include <string_view>
#include <unordered_map>

#include "compiler/bytecode/object_ref.h"
#include "compiler/frames/compiled_function.h"

namespace cutaway::frames {
namespace {

using bytecode::Held;
using bytecode::ObjectRef;
struct Row { Held object; Mark mark = Mark::none; };
std::unordered_map<PyObject*, Row>& rows() {
  static auto* r = new std::unordered_map<PyObject*, Row>;
  return *r;
}

std::vector<int> dims_in(PyObject* tensor, const char* name) {
  std::vector<int> out;
  PyObject** place = _PyObject_GetDictPtr(tensor);
  PyObject* set = place && *place ? PyDict_GetItemString(*place, name) : nullptr;
  if (!set || !PyAnySet_Check(set)) return out;
  ObjectRef items = ObjectRef::steal(PySequence_List(set));
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    const long n = PyLong_AsLong(PyList_GET_ITEM(items.get(), i));
    if (n == -1 && PyErr_Occurred()) { PyErr_Clear(); continue; }
    out.push_back(static_cast<int>(n));
  }
  PyErr_Clear();
  return out;
}

// torch.compiler.disable, allow_in_graph and their like write on the function, or into a set of ids.
PyObject* in_dict(PyObject* o, const char* name) {
  PyObject* dict = PyFunction_Check(o) ? reinterpret_cast<PyFunctionObject*>(o)->func_dict : nullptr;
  return dict ? PyDict_GetItemString(dict, name) : nullptr;
}
bool is_in_torch_set(PyObject* o, const char* set) {
  ObjectRef name = ObjectRef::steal(PyUnicode_FromString("torch._dynamo.trace_rules"));
  ObjectRef rules = ObjectRef::steal(PyImport_GetModule(name.get()));   // null while nobody has imported it: then nobody has marked anything
  ObjectRef ids = ObjectRef::steal(rules ? PyObject_GetAttrString(rules.get(), set) : nullptr);
  ObjectRef made = ObjectRef::steal(ids ? PyObject_GetAttrString(ids.get(), "function_ids") : nullptr);
  ObjectRef id = ObjectRef::steal(PyLong_FromVoidPtr(o));
  const bool found = made && PyAnySet_Check(made.get()) && PySet_Contains(made.get(), id.get()) == 1;
  PyErr_Clear();
  return found;
}
Mark torch_mark_of(PyObject* o) {
  if (!PyFunction_Check(o)) return Mark::none;
  if (in_dict(o, "_torchdynamo_disable") == Py_True) return Mark::graph_break;
  if (in_dict(o, "_dynamo_marked_constant") == Py_True) return Mark::constant_result;
  const auto* f = reinterpret_cast<PyFunctionObject*>(o);
  const char* module = f->func_module && PyUnicode_Check(f->func_module) ? PyUnicode_AsUTF8(f->func_module) : nullptr;
  if (module && std::string_view(module) == "torch._dynamo.decorators") {
    const std::string_view name = PyUnicode_AsUTF8(f->func_name);
    if (name == "graph_break" || name == "skip_frame") return Mark::graph_break;
  }
  if (module && std::string_view(module).starts_with("torch")) return Mark::none;   // torch fills the sets below with functions of its own
  if (is_in_torch_set(o, "_allowed_callable_ids")) return Mark::allow_in_graph;
  if (is_in_torch_set(o, "_disallowed_callable_ids")) return Mark::graph_break;
  return Mark::none;
}

}  // namespace

TorchDisable torch_disable_of(PyFunctionObject* function) {
  PyObject* f = reinterpret_cast<PyObject*>(function);
  if (!function->func_dict) return TorchDisable::no;
  static PyObject* name = nullptr;   // every frame asks; no initializer that calls Python (docs/notes/frames.md, threads)
  if (!name) name = PyUnicode_InternFromString("_torchdynamo_disable");
  PyObject* is_disabled = PyDict_GetItemWithError(function->func_dict, name);
  if (!is_disabled) PyErr_Clear();
  if (is_disabled != Py_True) return TorchDisable::no;
  return in_dict(f, "_torchdynamo_disable_recursive") == Py_True ? TorchDisable::all_below : TorchDisable::this_frame;
}

void mark_function(PyObject* o, Mark mark) {
  std::erase_if(rows(), [](const auto& row) { return !row.second.object.get(); });
  rows().insert_or_assign(o, Row{Held::weakly(o), mark});
}

Mark mark_of(PyObject* o) {
  const auto found = rows().find(o);
  if (found == rows().end() || found->second.object.get() != o) return torch_mark_of(o);
  return found->second.mark;
}

namespace {
struct Name { std::string text; Held key, function; };
struct Names { int given = 0; std::vector<Name> all; };   // of those that wanted the same one
struct Callables { std::unordered_map<std::string, Names> by_wanted; std::unordered_map<std::string, std::string> wanted; };
Callables& callables() {
  static auto* r = new Callables;
  return *r;
}
}  // namespace

std::string name_callable(std::string name, PyObject* o, PyObject* key) {
  Names& names = callables().by_wanted[name];
  if (!key) key = o;
  for (Name& n : names.all) {
    if (n.key.get() != key) continue;
    if (n.function.get() != o) n.function = Held::weakly(o);
    return n.text;
  }
  std::erase_if(names.all, [](const Name& n) {
    if (n.key.get()) return false;
    callables().wanted.erase(n.text);
    return true;
  });
  // A name is never given twice: a graph that somebody has kept must not call another function.
  std::string text = name;
  do {
    if (++names.given > 1) text = name + "_" + std::to_string(names.given);
  } while (callables().wanted.contains(text));
  callables().wanted[text] = name;
  names.all.push_back({text, Held::weakly(key), Held::weakly(o)});
  return text;
}
PyObject* named_callable(const std::string& name) {
  const auto wanted = callables().wanted.find(name);
  if (wanted == callables().wanted.end()) return nullptr;
  for (const Name& n : callables().by_wanted[wanted->second].all)
    if (n.text == name) return n.function.get();
  return nullptr;
}

DimMarks marked_dims(PyObject* tensor) {
  DimMarks m{dims_in(tensor, "_cutaway_dynamic_dims"), dims_in(tensor, "_cutaway_maybe_dynamic_dims"), dims_in(tensor, "_cutaway_static_dims")};
  for (int d : dims_in(tensor, "_dynamo_dynamic_indices")) m.dynamic.push_back(d);
  for (int d : dims_in(tensor, "_dynamo_weak_dynamic_indices")) m.maybe_dynamic.push_back(d);
  for (int d : dims_in(tensor, "_dynamo_static_indices")) m.static_.push_back(d);
  return m;
}

bool is_disabled_function(PyObject* o) { return Py_TYPE(o) == compiled_function_type() && !compiled_target(o); }

}  // namespace cutaway::frames
