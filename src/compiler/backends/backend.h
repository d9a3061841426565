// A backend turns a graph and example inputs into something callable. The table finds one by name; diagnosis wraps one from outside.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/capabilities/capabilities.h"
#include "core/debug/events.h"
#include "core/ir/graph.h"

namespace cutaway::backends {

/// Called with the name of a node and its value, which is valid during the call only.
using ValueObserver = std::function<void(const std::string& name, const at::Tensor&)>;

/// One kernel or library call of a compiled graph, and the graph's nodes that it computes, by their values' names as fx writes them.
struct Kernel {
  std::string name;
  std::vector<std::string> nodes;
};

/// A compiled graph. Boxed: run() empties its inputs. Exceptions pass through: they are what a debugger looks at.
struct CompiledGraph {
  virtual ~CompiledGraph() = default;
  virtual std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) = 0;
  /// After a run on this thread that raised: nothing had been written to yet.
  virtual bool left_inputs_alone() const { return false; }
  /// After a run on this thread that raised: the graph's own operators ran, as they are, and exec::Program::error_position() tells which raised.
  virtual bool ran_operators() const { return false; }
  /// True when run_observed() tells the values that the compiled graph holds on the way; only when Settings::observe asked for it.
  virtual bool tells_values() const { return false; }
  /// run(), and each value that has memory of its own. Names are those of the graph's values as fx writes them: '_' for '.', and "v" before a digit.
  virtual std::vector<c10::IValue> run_observed(std::vector<c10::IValue>& inputs, const ValueObserver&) { return run(inputs); }
  /// Kernels that were compiled anew for this graph so far, where the backend can tell; else 0.
  virtual int64_t new_kernels() const { return 0; }
  /// In the order in which they run; empty where the backend does not tell.
  virtual std::vector<Kernel> kernels() const { return {}; }
};

/// What a backend is told besides the graph. Options and extra are JSON text by name, as a manifest holds them.
struct Settings {
  std::string stage;                   ///< "capture", "aot" or empty
  std::string tracing_mode = "real";   ///< real, fake, symbolic
  std::map<std::string, std::string> options, extra;
  bool observe = false;                ///< compile so that run_observed() tells values, where the backend can
  std::string switches;                ///< JSON: which parts of the compiler are off (oracle::Switches); empty: none
  bool is_trial = false;               ///< a debugger asks: what is asked about is there before the first run
  bool is_watched = false;             ///< somebody looks at every run of the program: the same, and checks that the user asked for stay on
};

/// Example inputs may be fake tensors.
struct Backend {
  virtual ~Backend() = default;
  /// Before compile(). Those that have no settings ignore it.
  virtual void configure(const Settings&) {}
  /// What it can do: its row of the table. find_backend() fills it in, where whoever made the backend has not.
  capabilities::Row row;
  virtual base::Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph&, const std::vector<c10::IValue>& example_inputs, debug::Sink*) = 0;
};

/// Makes a backend from what follows the first ':' of its name ("fault:crash:aten.relu" gives "crash:aten.relu"; "eager" gives "").
using MakeBackend = std::function<base::Result<std::unique_ptr<Backend>>(std::string_view parameters)>;

/// Adds or replaces a backend. Thread-safe. What it can do stands in the table of capabilities; a name without a row there has torch's contract.
void register_backend(std::string name, MakeBackend);
/// By name, with parameters after ':'. Unknown names get the nearest one.
base::Result<std::unique_ptr<Backend>> find_backend(std::string_view name);
/// The rows of all that are registered, sorted by name.
std::vector<capabilities::Row> list_backends();

}  // namespace cutaway::backends
