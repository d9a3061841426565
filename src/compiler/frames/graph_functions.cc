#include "compiler/frames/graph_functions.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/scalar_tensor.h>
#include <frameobject.h>

#include <iterator>

#include "compiler/guards/tensor_object.h"
#include "compiler/guards/value_object.h"
#include "core/tensor/make.h"

namespace cutaway::frames {
namespace {

/// The GIL is released for its lifetime.
struct WithoutGil {
  PyThreadState* state = PyEval_SaveThread();
  ~WithoutGil() { PyEval_RestoreThread(state); }
};

/// Objects to values, the run without the GIL, values to objects. False with a Python exception set; exceptions of the run fly on.
template <class Run> bool run_converted(const Run& run, PyObject* const* inputs, size_t count, std::vector<ObjectRef>& outputs) {
  std::vector<c10::IValue> values(count);
  for (size_t i = 0; i < count; ++i)
    if (!guards::to_ivalue(inputs[i], values[i])) return false;
  std::vector<c10::IValue> results;
  {
    guards::WarningScope warnings;
    {
      WithoutGil released;
      results = run(values);
    }
    if (!warnings.end()) return false;
  }
  for (const c10::IValue& v : results) {
    outputs.push_back(guards::from_ivalue(v));
    if (!outputs.back()) return false;
  }
  return true;
}

thread_local int64_t failed = -1;        // of the last run that raised
thread_local bool wrote_inputs = true;

/// Position of an op -> number of the node of the graph's body that holds it.
class NodeOfOperator {
 public:
  explicit NodeOfOperator(const ir::Graph& graph) {
    int64_t number = 0;
    for (const ir::Node& node : graph.body.nodes) count(node, number);
  }
  int64_t operator()(int64_t position) const { return position >= 0 && position < static_cast<int64_t>(numbers_.size()) ? numbers_[position] : -1; }

 private:
  std::vector<int64_t> numbers_;
  // A scope only sets state: the calls in it are nodes of the program.
  void count(const ir::Node& n, int64_t& number) {
    if (n.kind == ir::Node::Kind::scope) {
      for (const ir::Node& inner : n.regions.front().nodes) count(inner, number);
      return;
    }
    if (n.kind == ir::Node::Kind::op) numbers_.push_back(number);
    else for (const ir::Block& region : n.regions) ir::for_each_node(region, [&](const ir::Node& inner) { if (inner.kind == ir::Node::Kind::op) numbers_.push_back(number); });
    ++number;
  }
};

struct ProgramGraph final : GraphFunction {
  exec::Program program;
  std::string name;
  NodeOfOperator node_of_operator;
  ProgramGraph(exec::Program p, std::string n) : program(std::move(p)), name(std::move(n)), node_of_operator(program.graph()) {}

  bool run(PyObject* const* inputs, size_t count, std::vector<ObjectRef>& outputs) override {
    failed = -1;
    try {
      return run_converted([&](std::vector<c10::IValue>& values) { return program.run(values); }, inputs, count, outputs);
    } catch (...) {
      guards::set_python_error();
      const int64_t position = exec::Program::error_position();
      failed = node_of_operator(position);
      add_place(position);
      return false;
    }
  }
  int64_t failed_node() const override { return failed; }
  bool is_reference() const override { return true; }

  // The traceback shows the line of the user's program that the operator came from.
  void add_place(int64_t position) {
    const ir::Graph& g = program.graph();
    int64_t at = 0;
    const ir::Node* found = nullptr;
    const ir::Node* around = nullptr;
    ir::LocationId location = ir::kNoLocation;
    for (const ir::Node& top : g.body.nodes) {
      const auto look = [&](const ir::Node& n) { if (n.kind == ir::Node::Kind::op && at++ == position) { found = &n; around = &top; } };
      look(top);
      for (const ir::Block& r : top.regions) ir::for_each_node(r, look);
      if (found) break;
    }
    if (found) location = found->location != ir::kNoLocation ? found->location : around->location;
    if (location == ir::kNoLocation) return;
    const ir::Location& l = g.locations[location];
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    const std::string& qualified = l.function.empty() ? name : l.function;
    PyCodeObject* code = PyCode_NewEmpty(l.file.c_str(), qualified.substr(qualified.rfind('.') + 1).c_str(), l.line);   // as tracebacks call it
    ObjectRef globals = ObjectRef::steal(PyDict_New());
    PyFrameObject* frame = code && globals ? PyFrame_New(PyThreadState_Get(), code, globals.get(), nullptr) : nullptr;
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    if (frame) PyTraceBack_Here(frame);
    Py_XDECREF(frame);
    Py_XDECREF(code);
  }
};

struct BackendGraph final : GraphFunction {
  std::unique_ptr<backends::CompiledGraph> compiled;
  NodeOfOperator node_of_operator;
  BackendGraph(std::unique_ptr<backends::CompiledGraph> c, const ir::Graph& graph) : compiled(std::move(c)), node_of_operator(graph) {}

  bool run(PyObject* const* inputs, size_t count, std::vector<ObjectRef>& outputs) override {
    failed = -1;
    wrote_inputs = true;
    exec::RunFailure failure;
    try {
      return run_converted([&](std::vector<c10::IValue>& values) { return compiled->run_or_tell(values, failure); }, inputs, count, outputs);
    } catch (...) {
      guards::set_python_error();
      failed = node_of_operator(failure.node);
      wrote_inputs = failure.wrote_inputs;
      return false;
    }
  }
  int64_t failed_node() const override { return failed; }
  bool is_reference() const override { return failed >= 0; }   // asked after a run that raised
  bool left_inputs_alone() const override { return !wrote_inputs; }
  bool may_leave_inputs_alone() const override { return true; }
};

ObjectRef float_tensor(PyObject* number) {
  try {
    return ObjectRef::steal(guards::wrap_tensor(at::scalar_tensor(PyFloat_AS_DOUBLE(number), at::kDouble)));
  } catch (...) {
    guards::set_python_error();
    return {};
  }
}

/// torch.compiler.is_compiling() is true while one lives.
struct TorchSaysCompiling {
  PyObject* names = nullptr;
  ObjectRef before;
  static PyObject* key() {
    static PyObject* name = PyUnicode_InternFromString("_is_compiling_flag");
    return name;
  }
  TorchSaysCompiling() {
    static PyObject* module = nullptr;   // not initialized here: two threads may come to it
    if (!module) module = PyImport_ImportModule("torch.compiler");
    if (!module) { PyErr_Clear(); return; }
    names = PyModule_GetDict(module);
    before = ObjectRef::borrow(PyDict_GetItemWithError(names, key()));
    if (before.get() == Py_True) before = {};   // a run inside a run
    else if (PyDict_SetItem(names, key(), Py_True) < 0) PyErr_Clear();
  }
  ~TorchSaysCompiling() {
    if (!names || !before) return;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    if (PyDict_SetItem(names, key(), before.get()) < 0) PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
};

struct CallableGraph final : GraphFunction {
  ObjectRef callable;
  std::vector<size_t> floats;
  CallableGraph(ObjectRef c, std::vector<size_t> f) : callable(std::move(c)), floats(std::move(f)) {}
  bool can_run_operators() const override { return false; }   // nobody knows what the backend made of them

  bool run(PyObject* const* inputs, size_t count, std::vector<ObjectRef>& outputs) override {
    TorchSaysCompiling compiling;
    std::vector<PyObject*> given;
    std::vector<ObjectRef> held;
    if (!floats.empty()) {
      given.assign(inputs, inputs + count);
      for (const size_t f : floats) {
        held.push_back(float_tensor(inputs[f]));
        if (!held.back()) return false;
        given[f] = held.back().get();
      }
      inputs = given.data();
    }
    ObjectRef result = ObjectRef::steal(PyObject_Vectorcall(callable.get(), inputs, count, nullptr));
    if (!result) return false;
    if (PyTuple_Check(result.get()) || PyList_Check(result.get())) {
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(result.get());
      for (Py_ssize_t i = 0; i < n; ++i) outputs.push_back(ObjectRef::borrow(PySequence_Fast_GET_ITEM(result.get(), i)));
    } else {
      outputs.push_back(std::move(result));
    }
    return true;
  }
};

}  // namespace

std::shared_ptr<GraphFunction> make_program_graph(exec::Program p, std::string name) { return std::make_shared<ProgramGraph>(std::move(p), std::move(name)); }
std::shared_ptr<GraphFunction> make_backend_graph(std::unique_ptr<backends::CompiledGraph> c, const ir::Graph& graph) { return std::make_shared<BackendGraph>(std::move(c), graph); }

bool to_values(const std::vector<ObjectRef>& objects, std::vector<c10::IValue>& out) {
  out.resize(objects.size());
  for (size_t i = 0; i < objects.size(); ++i)
    if (!guards::to_ivalue(objects[i].get(), out[i])) return false;
  return true;
}
bool program_raises(const ir::Graph& graph, const std::vector<ObjectRef>& inputs) {
  auto program = exec::Program::prepare(graph);
  std::vector<c10::IValue> values;
  if (!program.ok() || !to_values(inputs, values)) { PyErr_Clear(); return false; }
  WithoutGil released;
  try {
    values = tensor::clone_keeping_aliases(values);
    (void)program->run(values);
  } catch (...) {
    return true;
  }
  return false;
}
std::shared_ptr<GraphFunction> make_callable_graph(ObjectRef c, std::vector<size_t> floats) { return std::make_shared<CallableGraph>(std::move(c), std::move(floats)); }

std::vector<size_t> floats_as_tensors(CapturedGraph& g) {
  std::vector<size_t> positions;
  std::vector<ir::Node> reads;
  for (size_t i = 0; i < g.graph.inputs.size(); ++i) {
    const ir::ValueId number = g.graph.inputs[i].value;
    if (g.graph.value(number).type.kind != ir::Type::Kind::floating) continue;
    const std::string name = g.graph.value(number).name;
    g.graph.rename(number, "item");
    const ir::ValueId tensor = g.graph.add_value(name, ir::Type::of(ir::TensorType{.dtype = ir::DType::f64}));
    const ir::ValueId inner = g.graph.add_value("item", ir::Type::of(ir::Type::Kind::floating));
    g.graph.inputs[i].value = tensor;
    ir::Node op;
    op.target = "aten.item";
    op.args = {ir::ValueRef{tensor}};
    op.results = {inner};
    op.returns = {ir::Node::kSingle};
    ir::Node call;
    call.kind = ir::Node::Kind::call;
    call.target = "Tensor.item";
    call.args = op.args;
    call.results = {number};
    call.returns = op.returns;
    ir::Block region;
    region.nodes.push_back(std::move(op));
    region.outputs = {ir::ValueRef{inner}};
    call.regions.push_back(std::move(region));
    reads.push_back(std::move(call));
    g.example_inputs[i] = float_tensor(g.example_inputs[i].get());
    positions.push_back(i);
  }
  g.graph.body.nodes.insert(g.graph.body.nodes.begin(), std::make_move_iterator(reads.begin()), std::make_move_iterator(reads.end()));
  return positions;
}

}  // namespace cutaway::frames
