// What the user said about a function or a tensor: decorators such as disallow_in_graph and assume_constant_result, mark_dynamic.
// Capture asks here. Objects are held weakly where they allow it.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::frames {

enum class Mark : uint8_t {
  none,
  graph_break,       ///< calling it ends the graph: cutaway.graph_break, disallow_in_graph
  allow_in_graph,    ///< one node of the graph, not looked into
  constant_result,   ///< called at capture time; its result is a constant
  reorderable,       ///< may run after the graph: print, where the user listed it
};
void mark_function(PyObject*, Mark);
/// Of exactly this object; for a bound method ask for its function. Marks that torch's decorators left count as ours.
Mark mark_of(PyObject*);
/// What torch's disable() and its like say about running a function.
enum class TorchDisable : uint8_t { no, this_frame, all_below };
TorchDisable torch_disable_of(PyFunctionObject*);

/// A function that captured graphs call, by the name that their nodes have for it, so that an fx graph gets the object itself. The name that is returned is
/// another one where it was taken; it belongs to `key` as long as that lives (to the function itself without one), and to nobody afterwards.
/// Who has the graph holds the function: here it is held weakly, where it can be.
std::string name_callable(std::string name, PyObject*, PyObject* key = nullptr);
PyObject* named_callable(const std::string& name);   ///< borrowed; null without an exception

struct DimMarks { std::vector<int> dynamic, maybe_dynamic, static_; };
/// Dimensions that mark_dynamic and its like named on this tensor (torch's own marks too). Sets no exception.
DimMarks marked_dims(PyObject* tensor);

/// A function that disable() returned: it is called with nothing captured. (compiled_target() of compiled_function.h tells compiled ones.)
bool is_disabled_function(PyObject*);

}  // namespace cutaway::frames
