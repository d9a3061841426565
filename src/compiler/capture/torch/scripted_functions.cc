// Functions made by torch.jit.script: one call in the graph, whose region is what TorchScript's own interpreter does on fake tensors. So the meaning is
// TorchScript's, not that of the Python text that it was made from.
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <string>

#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {
// Neither profiles nor derivatives of its own: the operators are recorded as they are written.
struct Plainly {
  const bool before = torch::jit::getGraphExecutorOptimize();
  Plainly() { torch::jit::setGraphExecutorOptimize(false); }
  ~Plainly() { torch::jit::setGraphExecutorOptimize(before); }
};

std::string attribute_text(PyObject* o, const char* name) {
  PyObject* found = PyObject_GetAttrString(o, name);
  PyObject* text = found ? PyObject_Str(found) : nullptr;
  const char* words = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string all = words ? words : "";
  Py_XDECREF(text);
  Py_XDECREF(found);
  PyErr_Clear();
  return all;
}
// An fx graph writes its calls as text, and takes such a function for its class: a function of Python's around it has a name of its own.
PyObject* in_a_function(PyObject* scripted) {
  static PyObject* const make = [] {
    PyObject* space = PyDict_New();
    PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins());
    PyObject* name = PyUnicode_FromString("cutaway.scripted");
    PyDict_SetItemString(space, "__name__", name);
    Py_DECREF(name);
    PyObject* ran = PyRun_String("def make(function):\n    def scripted(*args, **kwargs):\n        return function(*args, **kwargs)\n    return scripted\n", Py_file_input, space, space);
    if (!ran) PyErr_Clear();
    Py_XDECREF(ran);
    return PyDict_GetItemString(space, "make");
  }();
  return make ? PyObject_CallOneArg(make, scripted) : nullptr;
}
}  // namespace

Value* Leaves::call_scripted(Value* f, const Args& args) {
  // What shows outside of the graph would happen now, and not at the next call.
  const std::string graph = attribute_text(f->real, "inlined_graph");
  for (const char* act : {"prim::Print", "aten::warn", "prim::PythonOp", "prim::CallFunction", "prim::fork", "aten::manual_seed", "prim::SetAttr", "prim::AddStatValue", "profiler::"})
    if (graph.empty() || graph.find(act) != std::string::npos) stop("unknown-callable", "a scripted function is called that does more than compute (" + std::string(act) + ")");
  for (size_t i = 0; i < args.count; ++i)
    if (const Kind k = values.kind(args[i]); k == Kind::list || k == Kind::dict)
      if (graph.find("aten::append") != std::string::npos || graph.find("aten::_set_item") != std::string::npos) stop("unknown-callable", "a scripted function is called that may change a list or dict");
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), to_python(args[i]));
  PyObject* keywords = nullptr;
  if (args.keyword_count) {
    keywords = values.keep(PyDict_New());
    for (size_t i = 0; i < args.keyword_count; ++i) {
      PyObject* x = to_python(args.keywords[i].second);
      PyDict_SetItem(keywords, args.keywords[i].first, x);
      Py_DECREF(x);
    }
  }
  const std::string name = "torch.jit.script." + attribute_text(f->real, "name");
  const Plainly plainly;
  if (torch_calls.is_transformed(args)) return finish_bare(f->real, name, positional, keywords);
  PyObject* around = in_a_function(f->real);
  if (!around) return exceptions.raise_python();
  return finish_leaf(f->real, name_callable(name, values.keep(around), f->real), positional, keywords, args);
}

}  // namespace cutaway::capture
