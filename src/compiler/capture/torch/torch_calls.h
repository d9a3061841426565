// Calls of torch that are not one node: checkpoints, gradients taken inside the program, function transforms, tensors that begin to require
// grad. One object a trace; each group of functions is a file: checkpoints.cc, gradients.cc, transforms.cc.
//
// A transform of torch.func (vmap, grad, jvp) is entered for real while its function is interpreted. Tensors inside are torch's wrappers around fakes,
// and the recorder sees what the transform makes of each call: operators on the fakes. Such calls are recorded as bare operators.
#pragma once
#include <Python.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/values/owners.h"

namespace at {
class Tensor;
}
namespace cutaway::capture {

/// The trace starts over, with every call recorded as bare operators: a backward pass inside it needs what they keep.
struct RestartBare {};

class TorchCalls : protected Owners {
 public:
  explicit TorchCalls(const Owners& owners) : Owners(owners) {}
  ~TorchCalls();
  TorchCalls(const TorchCalls&) = delete;
  TorchCalls& operator=(const TorchCalls&) = delete;

  /// A function of torch, written in Python, that capture answers itself. False: another function.
  bool call_function(Value* f, const Args& args, Value** result);

  // --- marked_functions.cc ---
  /// A function that the user allowed in graphs: one node. Null with raised().
  Value* call_allowed(Value* f, const Args& args);
  /// A function whose result the user called constant: it runs now.
  Value* call_constant(Value* f, const Args& args);
  // --- named_functions.cc ---
  /// A function of Python that the graph calls on tensors; `like`: fakes of what it gives.
  std::vector<Value*> call_named(const std::string& name, PyObject* callable, const std::vector<Value*>& tensors, const std::vector<at::Tensor>& like, const std::vector<bool>& grad);
  PyObject* fake_like(PyObject* size, PyObject* stride, PyObject* dtype);   ///< kept by the trace
  /// torch.autograd.Function.apply for backends of C++. Null with raised().
  Value* apply_function(const std::string& shown, Value* klass, const Args& args);
  /// Of a Function or operator in a graph of a Python backend. `call`: what is called with the gradients, and what it is given before them.
  void require_pure_backward(const std::string& shown, std::vector<Value*> call, const std::vector<Value*>& given, Value* ctx, Value* results);
  bool keeps_other_tensors(Value* ctx, const std::vector<Value*>& given, Value* results);
  void require_pure_function(const std::string& shown, Value* klass, const Args& args, Value* traced);   ///< `traced`: the result of trace_function
  void require_pure_operator(const std::string& name, PyObject* op, const Args& args, Value* result);
  void refuse_python_kernels(const std::string& name, PyObject* op, const Args& args);   ///< that tracing would run
  // --- tensor_hooks.cc ---
  Value* register_hook(Value* tensor, Value* hook, const char* method);
  PyObject* hook_maker(Value* hook, const char* method, std::vector<Value*>& kept);
  const std::vector<std::pair<Value*, Value*>>& hook_cells() const { return hook_cells_; }   ///< cells of the trace that hooks close over, and what is in them: they must stay as they are

  // --- gradients.cc ---
  Value* set_requires_grad(Value* tensor, bool wanted);
  Value* retain_grad(Value* tensor);
  bool set_data(Value* tensor, Value* data);      ///< tensor.data = data
  /// Guarded for a tensor of the program.
  bool is_leaf(Value* tensor);
  /// None, or something that can only be compared with None; breaks where more is done with it.
  Value* grad_fn(Value* tensor);

  // --- transforms.cc ---
  /// The call is inside a transform, or has tensors of one: no node of its own.
  bool is_transformed(const Args& args);
  static bool is_wrapper(const at::Tensor& t);
  bool in_transform() const { return !levels_.empty(); }
  bool in_vmap_alone() const;   ///< in transforms, and none of them differentiates
  /// The step that entered the first of the transforms and modules with backward hooks that are open: the graph cannot end inside.
  std::optional<uint64_t> open_since() const;
  /// Code of torch in Python that may be inlined although frames inside it are left alone.
  static bool may_inline(PyCodeObject* code);
  /// A C function of torch.func's machinery, by its name. False: not one that capture knows.
  bool call_transform(const std::string& name, PyObject* callable, const Args& args, Value** result);
  /// Leaves the transforms that are open. Called when the trace ends, however it does.
  void leave_transforms();

  // --- state_setters.cc ---
  /// A C function that sets a switch of the process. False: another one.
  bool call_setter(const std::string& name, PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result);
  bool sets_switches() const { return sets_switches_; }
  /// Would a graph break at this place of the program raise? As error_on_graph_break says, which the captured code may have set.
  bool breaks_raise();
  void note_random_node() { ++random_nodes_; }
  // --- function_modes.cc ---
  /// A C function of the stack of torch function modes. False: not for a mode of the trace.
  bool call_mode_stack(const std::string& name, const Args& args, Value** result);
  /// The call as the innermost mode of the trace answers it. False: there is none, or it would not be asked.
  bool call_by_mode(PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result);
  bool in_mode() const { return !modes_.empty(); }

  // --- tensor_subclasses.cc, checkpoints.cc, gradients.cc ---
  void note_class(Value* tensor);                 ///< it came into the trace, or its class changed
  /// The call as __torch_function__ of a class among its arguments answers it. False: there is none, or it would not be asked.
  bool call_by_subclass(PyObject* callable, const Args& args, Value** result);
  bool overrides(Value* tensor);
  bool overrides_by_default(Value* tensor);       ///< by Tensor's own __torch_function__
  Value* as_subclass(Value* tensor, PyTypeObject* t);
  Value* converted(Value* result, PyTypeObject* t);
  void refuse_subclasses(const std::string& what);
  bool has_subclasses() const { return has_subclasses_; }
  bool is_overriding_off() const;                 ///< by the captured code or around it
  bool is_all_off() const;                        ///< for modes, too
  // --- tensor_shells.cc ---
  /// A tensor from outside whose class has __torch_dispatch__: no input of the graph; `body` gets what stands for it.
  void add_shell(Value* v, Tensor& body);
  static bool is_shell(const at::Tensor& fake);
  bool is_shell(Value* tensor);
  /// What makes instances of subclasses of Tensor in C. False: another function.
  bool call_maker(PyObject* callable, const Args& args, Value** result);
  struct ShellArguments { std::vector<Value*> positional; std::vector<Keyword> keywords; };
  const ShellArguments& arguments_of_shell(Value* made) const { return shells_.at(made); }   ///< of _make_wrapper_subclass, without the class
  /// Around a call of torch that may reach a shell.
  struct ShellCall {
    explicit ShellCall(TorchCalls& c);
    ~ShellCall();
    ShellCall(const ShellCall&) = delete;
    ShellCall& operator=(const ShellCall&) = delete;
    TorchCalls& calls;
    TorchCalls* before;
    std::pair<uint64_t, uint64_t> entered;
  };
  /// Behind it: ends the graph where __torch_dispatch__ did. False: it raised.
  bool end_shell_call(PyObject* result);
  void refuse_gradients(PyObject* result);
  PyObject* answer_dispatch(PyObject* function, PyObject* args, PyObject* keywords);   ///< what __torch_dispatch__ of a shell is asked
  void note_named_call() { has_named_ = true; }
  bool calls_by_name() const { return has_named_; }   ///< the graph calls functions of Python by name
  struct Off {                                    ///< overriding is switched off
    explicit Off(TorchCalls& c) : calls(c) { ++calls.overriding_off_; }
    ~Off() { --calls.overriding_off_; }
    TorchCalls& calls;
  };

  /// Every call is recorded as bare operators, see RestartBare.
  void make_all_bare();
  bool all_bare() const { return all_bare_; }
  /// addcdiv_ and its like with a tensor as the factor, as compiled optimisers call them. False: not such a call.
  bool call_with_tensor_factor(const std::string& name, const Args& args, Value** result);

  /// A function that the trace is inside of asks for grad mode, and the answer is another one when it is computed again.
  void note_grad_mode_question();
  void note_autograd_question(const std::string& what);   ///< the same for what autograd knows of tensors

 private:
  Value* checkpoint(Value* f, const Args& args);
  // --- control_flow.cc, checkpoints.cc ---
  struct Branch;
  /// What the trace does while one lives: values that exist at its beginning count as outside.
  class Watch {
   public:
    explicit Watch(TorchCalls& calls);
    bool has_changed_something() const;
    bool has_written_tensors() const;
    bool has_drawn_random() const { return calls_.random_nodes_ != random_; }

   private:
    TorchCalls& calls_;
    size_t writes_, random_;
    WatchWrites watch_;
    std::vector<std::pair<PyObject*, uint32_t>> versions_;   // of the fakes: how often they were written to
  };
  /// Interprets a function of the user's that the backward pass calls, for what it does besides giving a result: a backend of Python's may trace it once
  /// and never call it again. Ends the graph where it does anything.
  void require_pure(const char* id, const std::string& what, Value* f, const std::vector<Value*>& args);
  Value* gradient_like(Value* tensor);   ///< a tensor that the trace knows nothing else about
  Value* cond(Value* f, const Args& args);
  Value* while_loop(Value* f, const Args& args);
  Value* scan(Value* f, const Args& args);
  Value* map(Value* f, const Args& args);
  Value* scan_rows(const char* name, const Args& args, bool carries);
  Value* call_whole(Value* f, const Args& args);   ///< Python of torch's in which no graph ends
  bool flatten(Value* v, std::vector<Value*>& into);
  Value* rebuild(Value* form, const std::vector<Value*>& flat, size_t& next);
  bool same_form(Value* a, Value* b);
  std::unique_ptr<Branch> record_branch(const char* what, Value* f, const std::vector<Value*>& args);
  static void arrange_inputs(Branch& b, const std::vector<at::Tensor>& first);   ///< these come first, in order, then what is from outside
  Value* finish_control_flow(const char* name, const char* maker, const std::vector<const Branch*>& branches, Value* form, std::vector<ir::Argument> arguments,
                             const std::function<void(const std::vector<std::string>&)>& call, const std::vector<at::Tensor>& like, std::vector<at::Tensor> used);
  std::vector<Value*> finish_results(const std::string& name, std::vector<ir::Argument> arguments, const std::function<void()>& call, const std::vector<at::Tensor>& like,
                                     const std::vector<bool>& grad, const std::vector<at::Tensor>& used);
  // --- named_functions.cc, gradients.cc, transforms.cc, tensor_subclasses.cc ---
  PyObject* template_of(const std::vector<Value*>& args, std::vector<Value*>& tensors);
  bool has_exact_form(Value* v, int depth = 0);
  Value* constant_result(PyObject* o, bool is_ours);
  Value* backward_hook(Value* f, const Args& args);
  void require_pure_hooks(Value* self, const std::vector<Value*>& inputs, const std::vector<Value*>& outputs);
  struct HookSite { PyObject* object = nullptr; uint64_t entered_at = 0; bool is_open = false; std::vector<Value*> inputs; };
  std::unordered_map<Value*, HookSite> hook_sites_;   // by BackwardHook of the trace: what stands for it when the graph runs
  Value* autograd_grad(Value* f, const Args& args);
  Value* gradient_leaves(Value* f, const Args& args);   ///< of a tuple of tensors, for _polyfills/gradients.py
  Value* gradient_layout(Value* f, const Args& args);
  void require_plain_leaves(const char* id, const char* what);
  Value* load_decompositions(Value* f, const Args& args);
  Value* run_bare(PyObject* callable, const std::string& name, const Args& args);

  Value* default_torch_function(Value* klass, Value* function, const std::vector<Value*>& types, const Args& args);
  Value* tensor_torch_function(Value* f, const Args& args);
  Value* switch_overriding(Value* f, const Args& args);
  void find_overriding(Value* v, std::vector<Value*>& into, int depth);
  Value* from_probe(PyObject* o, const std::vector<std::pair<PyObject*, Value*>>& probes);
  void meet_shells();
  Value* make_shell(PyTypeObject* t, const Args& args);
  Value* make_subclass(PyTypeObject* t, const Args& args);
  PyObject* dispatch_to_class(PyObject* function, PyObject* args, PyObject* keywords);
  void refuse_history(Value* v, int depth = 0);
  std::unordered_map<Value*, ShellArguments> shells_;   // that the trace made
  std::pair<uint64_t, uint64_t> shell_keys_;            // dispatch keys of the thread at the call that is running: included, excluded
  std::exception_ptr shell_stop_;
  bool shell_raised_ = false, met_shells_ = false;
  bool has_subclasses_ = false, has_named_ = false, sets_switches_ = false;
  size_t random_nodes_ = 0;                       // that draw random numbers
  std::vector<std::pair<Value*, Value*>> hook_cells_;
  int overriding_off_ = 0, all_off_ = 0;          // by the captured code: for classes; for modes, too

  enum class Level : unsigned char { layer, dual };
  std::vector<Level> levels_;
  uint64_t first_level_at_ = 0;
  std::vector<uint64_t> whole_calls_;   // steps at which they began
  bool met_transforms_ = false, all_bare_ = false;
  int in_checkpoint_ = 0, in_reentrant_ = 0;
  bool met_reentrant_ = false;
  std::vector<Value*> modes_;   // entered by the program, innermost last
};

}  // namespace cutaway::capture
