// Calls of torch that are one node of the graph each, and methods and attributes of tensors. graph_arguments.cc converts between values and what a call takes and returns.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/guards/guard.h"
#include "core/ir/graph.h"

namespace cutaway::capture {

class Leaves : protected Owners {
 public:
  explicit Leaves(const Owners& owners) : Owners(owners) {}
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

  enum class Leaf : uint8_t { no, graph, constant, state, queued };
  struct InferenceContext { Value* object; bool mode; bool is_open; std::vector<bool> before; };   ///< before: grad mode, autocast of each device
  Leaf leaf_of(PyObject* callable);
  Value* call_function_apply(const Args& args);        ///< torch.autograd.Function.apply of the class args[0]
  Value* call_known_function(Value* f, Leaf leaf, const Args& args);
  Value* call_leaf(PyObject* callable, const char* method, const Args& args);   ///< one node of the graph
  Value* call_tensor_method(Value* tensor, PyObject* name, const Args& args);
  Value* tensor_attribute(Value* tensor, PyObject* name);
  bool has_own_attribute(Value* tensor, PyObject* name);   ///< in its __dict__
  bool set_tensor_attribute(Value* tensor, PyObject* name, Value* x);
  bool has_tensor(const Args& args);
  int tensor_truth(Value* tensor);
  Value* call_leaf_constant(Value* tensor, const char* method);   ///< a number that follows from metadata or a constant
  bool contains_tensor(Value* v, int depth = 0);
  Value* from_result(PyObject* o);                     ///< the result of a leaf: tensors, containers, numbers
  PyObject* to_python(Value* v);                       ///< with fakes in the place of tensors: new reference; throws EndOfGraph for what has no such form
  ir::Argument to_argument(Value* v);
  Value* finish_bare(PyObject* callable, const std::string& name, PyObject* tuple, PyObject* keywords);   ///< the same without a node of its own
  bool is_bare() const { return is_bare_; }
  bool swap_bare(bool is) { return std::exchange(is_bare_, is); }
  void set_probe(Value* v, PyObject* probe) { probes_[v] = probe; }
  bool has_probe(Value* v) const { return probes_.contains(v); }
  void clear_probes() { probes_.clear(); }
  Value* leaf_raised(const std::string& name, bool tensors = true, bool spelled = true);   ///< torch has set a Python error, on fakes
  /// Of a function that the graph calls by name, see marks.h; the plan holds it.
  std::string name_callable(std::string name, PyObject* o, PyObject* key = nullptr);
  void hold_callable(guards::ObjectRef o) { callables_.push_back(std::move(o)); }   ///< as long as the plan lives
  std::vector<guards::ObjectRef> take_callables() { return std::move(callables_); }
  Value* call_scripted(Value* f, const Args& args);
  /// torch.inference_mode's own __enter__ and __exit__, whose work is done by an object of C. False: another function.
  bool call_inference_mode(PyObject* function, const Args& args, Value** result);
  const std::vector<InferenceContext>& inference_contexts() const { return inference_contexts_; }   ///< in the order in which they were entered

  // Numbers that only the data knows: data_numbers.cc.
  Value* number_from(PyObject* symbolic);
  /// A node that computes it, `target` an operator of the namespace "sym". Null: an operand is no number. Stops where it cannot be followed.
  Value* compute_number(const char* target, const std::vector<Value*>& operands);
  Value* binary_with_number(size_t index, const char* reflected, Value* a, Value* b);
  Value* compare_with_number(int op, Value* a, Value* b);
  Value* call_with_number(PyObject* f, const Args& args);   ///< a function of C of one number; null: none that is known
  bool call_check(Value* f, const Args& args, Value** result);   ///< torch._check and its kin, of such a number

 private:
  Value* read_number(const std::string& method, Value* tensor);   ///< what int(x), x.tolist() and their like give; null: nothing
  Value* read_list(Value* tensor, size_t* left);
  Value* finish_leaf(PyObject* callable, std::string name, PyObject* tuple, PyObject* keywords, const Args& args);
  void refuse_warning(const std::string& name, const std::string& text);   ///< stops where a call has warned (torch_warnings.h), so that CPython makes it
  void refuse_handled_errors(const std::string& name, uint64_t failed_before);   ///< torch went on after an operator raised on fakes

  std::unordered_map<Value*, PyObject*> probes_;       ///< while torch is asked what __torch_function__ would get: in the place of values
  std::vector<InferenceContext> inference_contexts_;
  std::vector<guards::ObjectRef> callables_;
  bool is_bare_ = false;                               ///< what is recorded now belongs to no call, and asks for its place
  int argument_depth_ = 0;   ///< containers in containers; one that holds itself would never end
};

}  // namespace cutaway::capture
