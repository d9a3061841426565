// A compiled graph as whoever runs or looks at one sees it. Backends make them, ahead-of-time autograd puts two halves together from them.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cutaway::exec {

/// Called with the name of a node and its value, which is valid during the call only.
using ValueObserver = std::function<void(const std::string& name, const at::Tensor&)>;

/// One kernel or library call of a compiled graph, and the graph's nodes that it computes, by their values' names as fx writes them.
struct Kernel {
  std::string name;
  std::vector<std::string> nodes;
};

/// How far a run came that raised.
struct RunFailure {
  int64_t node = -1;          ///< the graph's own operators ran, as they are, and the one at this position raised; -1: something else ran
  bool wrote_inputs = true;   ///< false: nothing had been written to yet
};

/// Boxed: run() empties its inputs. Exceptions pass through: they are what a debugger looks at.
struct CompiledGraph {
  virtual ~CompiledGraph() = default;
  virtual std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) = 0;
  /// The same; when it raises, `failure` says how far it came, as far as the backend knows.
  virtual std::vector<c10::IValue> run_or_tell(std::vector<c10::IValue>& inputs, RunFailure& failure) {
    failure = {};
    return run(inputs);
  }
  /// True when run_observed() tells the values that the compiled graph holds on the way; only when the settings of its backend asked for it.
  virtual bool tells_values() const { return false; }
  /// run(), and each value that has memory of its own. Names are those of the graph's values as fx writes them: '_' for '.', and "v" before a digit.
  virtual std::vector<c10::IValue> run_observed(std::vector<c10::IValue>& inputs, const ValueObserver&) { return run(inputs); }
  /// Kernels that were compiled anew for this graph so far, where the backend can tell; else 0.
  virtual int64_t new_kernels() const { return 0; }
  /// In the order in which they run; empty where the backend does not tell.
  virtual std::vector<Kernel> kernels() const { return {}; }
};

}  // namespace cutaway::exec
