// One launch for a whole half: the program's run is recorded into a CUDA graph and played back while its inputs lie where they lay.
// Main type: GraphRunner.
#pragma once
#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/native/torch_graph.h"
#include "core/exec/interpreter.h"

namespace cutaway::native {

/// Empty when what the graph does can be recorded: all of it on one CUDA device, by operators that are known not to ask the host for anything.
std::string why_not_recorded(const ir::Graph&);

/// Runs a program, as a recording where this is right and as single launches where it is not. Thread-safe.
///
/// What the caller sees of a recording is copied out of it. The last `hidden` outputs are seen by the backward half alone: those are given as they are, and while
/// one of them is held, calls go by single launches. Inputs that lie elsewhere than at the recording are copied in; where most of them moved it is recorded anew.
class GraphRunner {
 public:
  GraphRunner(const ir::Graph&, size_t hidden, debug::Sink*);
  ~GraphRunner();
  std::vector<c10::IValue> run(const exec::Program&, std::vector<c10::IValue>& inputs);
  /// Why calls go by single launches for good; empty while they do not.
  std::string reason() const;

  struct Counts { int64_t plain = 0, recorded = 0, replayed = 0; };
  Counts counts() const;

 private:
  struct Recording;
  std::vector<c10::IValue> plain(const exec::Program&, std::vector<c10::IValue>& inputs, const c10::Stream&);
  std::vector<c10::IValue> warm_up(const exec::Program&, std::vector<c10::IValue>& inputs, const c10::Stream&);
  void record(const exec::Program&, const std::vector<c10::IValue>& inputs);
  std::vector<c10::IValue> replay(std::vector<c10::IValue>& inputs, const c10::Stream&);
  bool takes(const std::vector<c10::IValue>& inputs) const;
  void give_up(std::string reason);

  struct Input { c10::ScalarType dtype; std::vector<int64_t> sizes, strides; int64_t bytes = 0; bool is_copied = false; int moved = 0; };
  mutable std::mutex mutex_;
  std::vector<Input> inputs_;
  c10::Device device_{c10::kCPU};
  size_t hidden_, output_count_;
  std::string reason_;
  std::atomic<bool> has_given_up_{false};
  std::unique_ptr<Recording> recording_;
  Counts counts_;
  int calls_ = 0, records_ = 0;
};

/// What has been recorded and played back in this process so far, over all graphs.
GraphRunner::Counts cuda_graph_counts();
/// Reasons for which graphs were not recorded, latest last; a few.
std::vector<std::string> cuda_graph_reasons();

}  // namespace cutaway::native
