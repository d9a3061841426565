// The tensor side of a trace: fake tensors for the program's tensors, the recorder that writes the graph, and the state of torch that the
// program changes while it is traced, put back when the trace ends.
#pragma once
#include <Python.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "core/base/result.h"
#include "core/exec/process_state.h"
#include "core/ir/graph.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

namespace c10 {
struct InferenceMode;
}
namespace cutaway::capture {

// torch.Tensor <-> at::Tensor, in tensor_objects.cc alone: torch's Python headers are slow to compile.
bool is_tensor_object(PyObject* o);
const at::Tensor& unwrap_tensor(PyObject* o);
PyObject* wrap_tensor(const at::Tensor& t);                    ///< new reference
PyObject* dtype_object(int scalar_type);                       ///< torch.float32 and its like: new reference
// torch.SymInt, SymFloat, SymBool <-> the number of a recording (core/trace/unknown_number.h).
bool is_symbolic_object(PyObject* o);
c10::IValue unwrap_symbolic(PyObject* o);
PyObject* item_object(const at::Tensor& t);                    ///< item(): new reference, or null with a Python error
PyObject* wrap_symbolic(const c10::IValue& v);                 ///< new reference
c10::IValue wrapped_symbolic(const at::Tensor& t);             ///< none: t is no number, or one that is known
/// Numbers, text, dtypes, devices and the like as the graph writes them; none when there is no literal.
std::optional<ir::Argument> literal_of(PyObject* o);

class TensorTrace : protected Owners {
 public:
  explicit TensorTrace(const Owners& owners);
  ~TensorTrace();
  TensorTrace(const TensorTrace&) = delete;
  TensorTrace& operator=(const TensorTrace&) = delete;

  /// A tensor of the program becomes an input of the graph, guarded; `body` gets its fake.
  void add_input(Value* v, Tensor& body);
  trace::Recorder& recorder() { return branches_.empty() ? *recorder_ : *branches_.back(); }
  /// What is recorded from here on goes into a graph of its own, whose inputs are all tensors from outside that it uses.
  void begin_branch();
  size_t node_count() { return recorder().node_count(); }
  void end_branch() { branches_.pop_back(); }
  /// Sources and tensors of the inputs, in order of first use (constants of the recorder not included).
  const std::vector<Value*>& inputs() const { return inputs_; }
  /// Stops recording: what runs next is not the program's. Inputs and constants stay.
  void end();
  /// Puts grad mode, autocast and inference mode back as they were at the start; called by the destructor.
  void restore_state();
  static constexpr c10::DeviceType kAutocastDevices[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA};
  struct State { bool grad; bool inference; std::vector<std::pair<bool, int>> autocast; bool cache; int nesting; };
  static bool saved_hooks_are_disabled();   ///< by the program, for a part of it
  static State current_state();
  /// Inference mode as the program enters and leaves it; left for good when the trace ends.
  void enter_inference(bool on);
  bool leave_inference();   ///< false: the trace has not entered it
  const State& state_at_start() const { return start_; }
  const exec::SwitchState& switches_at_start() const { return switches_; }

 private:
  void add_guard(Value* v);
  State start_;
  exec::SwitchState switches_;
  c10::impl::LocalDispatchKeySet keys_;   // of this thread before anything was traced
  std::optional<trace::FakeMode> mode_;
  std::optional<trace::FakeMaker> fakes_;
  std::unique_ptr<trace::Recorder> recorder_;
  std::vector<std::unique_ptr<trace::Recorder>> branches_;
  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<c10::InferenceMode>> inference_;
};

}  // namespace cutaway::capture
