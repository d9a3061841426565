// The inside of a Recorder: values by tensor, open regions, and the scopes that grad mode and autocast make. Internal to core/trace.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/trace/recorder/known_tensors.h"
#include "core/trace/recorder/literal.h"
#include "core/trace/fakes/operator_info.h"
#include "core/trace/fakes/unknowns.h"
#include "core/trace/recorder.h"

namespace cutaway::trace {

/// Devices whose autocast a recording looks at.
inline constexpr c10::DeviceType kAutocastDevices[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA, c10::DeviceType::XPU, c10::DeviceType::MPS};

using Runner = void (*)(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*);

struct Recorder::State {
  explicit State(RecordOptions);
  ~State();

  /// Records one operator: arguments, the run itself, results.
  void observe(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*, Runner);
  ir::Argument argument_for(const at::Tensor&);
  ir::Argument write(const c10::IValue& v, const c10::Type* type = nullptr) { return writer.write(v, type); }

  void add_input(const at::Tensor&, InputName);
  void open_call(ir::Node);
  void close_call(const std::vector<c10::IValue>& results, const std::vector<int32_t>& returns);
  void drop_call();
  c10::IValue add_number(std::string target, const std::vector<c10::IValue>& args, const std::function<c10::IValue(const std::vector<c10::IValue>&)>& compute);
  void add_check(const c10::IValue& number, std::string message);
  /// Notes an error where an input got a history or a storage that no operator gave it. Other tensors are looked at when they are used.
  void check_inputs();
  /// A tensor on which the program registered a hook; null when there is none.
  const at::Tensor* hooked_tensor() const;
  /// Closes a scope that is open in the innermost frame; calls stay open.
  void close_scope();

  RecordOptions options;
  ir::Graph graph;
  std::vector<at::Tensor> inputs, constants;
  std::optional<base::Error> error;   ///< the first thing that makes the graph unusable
  struct Frame { ir::Node node; std::vector<ir::Node> nodes; uint32_t region = 0; std::vector<std::pair<at::Tensor, ir::ValueId>> rebound; };
  std::vector<Frame> frames;          ///< the first is the graph's body

 private:
  struct Region { uint32_t parent = 0; size_t position = 0; bool is_open = true; bool is_call = false; std::string name; };

  [[noreturn]] void refuse_reading(const OperatorInfo&);
  void record_call(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*, Runner);
  ir::ValueId bind(const at::Tensor&, ir::ValueId, bool is_derived = false);
  ir::ValueId new_value(std::string_view name, const c10::IValue&);
  ir::ValueId visible(ir::ValueId);                  ///< the value as seen from the innermost frame; kNoValue when it cannot be
  std::optional<ir::ValueId> derive(const at::Tensor&);
  void check_unchanged(const KnownTensor&);
  bool is_known_constant(const at::Tensor&);
  bool are_known_constants(const OperatorInfo&, const torch::jit::Stack& arguments);
  void write_check(const at::Tensor& condition, std::string message);
  /// aten::allclose as a check: its condition becomes a part of the graph.
  void write_closeness(torch::jit::Stack*);
  ir::Node start_node(const OperatorInfo&);
  ir::LocationId here();
  void add_arguments(ir::Node&, const c10::OperatorHandle&, const OperatorInfo&, const torch::jit::Stack&);
  /// True when the results depend on the inputs, or on chance.
  bool add_results(ir::Node&, const OperatorInfo&, const torch::jit::Stack&);
  /// Unknown numbers and sizes: recorder_numbers.cc.
  bool involves_unknowns(const OperatorInfo&, const torch::jit::Stack&) const;
  void record_number(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*);
  void run_with_unknowns(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*, Runner);
  bool run_once(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*, Runner);
  c10::IValue in_world(const c10::IValue&, size_t world, bool* is_alive) const;
  at::Tensor merge_worlds(const OperatorInfo&, const std::array<at::Tensor, kWorlds>&, const std::vector<at::Tensor>& arguments);
  ir::Argument number_argument(const c10::IValue&);
  void name_unknown_sizes(ir::TensorType&, const at::Tensor&);
  ir::ValueId emit(const char* target, const char* name, std::vector<ir::Argument> args, const at::Tensor& type_like);
  void enter_state();
  void push(ir::Node&&);
  std::vector<ir::Node>& nodes_of(uint32_t region);
  ir::Node& node_of(uint32_t region);
  ir::RegionState difference() const;

  LiteralWriter writer;
  KnownTensors tensors;
  std::unordered_map<const c10::SymNodeImpl*, std::pair<c10::SymNode, ir::ValueId>> numbers;   ///< unknown ones by their node
  UnknownCounts unknown_counts;
  bool took_number = false;   ///< the operator in hand has an unknown number as a tensor
  std::map<std::vector<int64_t>, std::string> size_names;   ///< by what a size is in each world
  std::vector<Region> regions{Region{}};
  std::vector<uint32_t> home;                         ///< by value: the region that defines it
  std::vector<bool> from_inputs;                      ///< by value: false for constants and what is made of them alone
  std::vector<at::Generator> generators;
  std::unordered_map<uint64_t, ir::LocationId> places;
  bool grad_at_start = true, inference_at_start = false;
  unsigned autocast_at_start = 0;                     ///< a bit a device type

 public:
  State* outer = nullptr;                             ///< the recording that was active before
  int graph_task = -1;   ///< the run of autograd's engine inside which the recording began: a hook, a compiler of backward graphs
  bool allows_backward = false, met_transforms = false;
  bool watches_errors = false;
  Seen seen;
  std::vector<const c10::TensorImpl*> retained;   ///< on which retain_grad was recorded
  bool was_included = false, threads = true, hooks_were_off = false;
};

/// Operators that raise meanwhile are not counted among the failed ones: a world in which one raises says nothing of the program.
struct FailuresUncounted {
  uint64_t before;
  FailuresUncounted();
  ~FailuresUncounted();
};

/// The active recording of this thread for a place; null when there is none.
Recorder::State*& active_recording(Where);

}  // namespace cutaway::trace
