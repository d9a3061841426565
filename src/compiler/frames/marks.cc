#include "compiler/frames/marks.h"

#include <unordered_map>

#include "compiler/bytecode/object_ref.h"
#include "compiler/frames/compiled_function.h"

namespace cutaway::frames {
namespace {

using bytecode::ObjectRef;
struct Row { ObjectRef held; bool weak = false; Mark mark = Mark::none; };
std::unordered_map<PyObject*, Row>& rows() {
  static auto* r = new std::unordered_map<PyObject*, Row>;
  return *r;
}
bool is_gone(const Row& r) { return r.weak && PyWeakref_GET_OBJECT(r.held.get()) == Py_None; }

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

}  // namespace

void mark_function(PyObject* o, Mark mark) {
  std::erase_if(rows(), [](const auto& row) { return is_gone(row.second); });
  ObjectRef weak = ObjectRef::steal(PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) ? PyWeakref_NewRef(o, nullptr) : nullptr);
  if (!weak) PyErr_Clear();
  rows()[o] = weak ? Row{weak, true, mark} : Row{ObjectRef::borrow(o), false, mark};
}

Mark mark_of(PyObject* o) {
  const auto found = rows().find(o);
  if (found == rows().end() || (found->second.weak && PyWeakref_GET_OBJECT(found->second.held.get()) != o)) return Mark::none;
  return found->second.mark;
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
