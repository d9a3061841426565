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
#include "core/capabilities/switches.h"
#include "core/debug/events.h"
#include "core/exec/compiled_graph.h"
#include "core/ir/graph.h"

namespace cutaway::backends {

using exec::CompiledGraph;
using exec::Kernel;
using exec::ValueObserver;

/// What a backend is told besides the graph. Options and extra are JSON text by name, as a manifest holds them.
struct Settings {
  std::string stage;                   ///< "capture", "aot" or empty
  std::string tracing_mode = "real";   ///< real, fake, symbolic
  std::map<std::string, std::string> options, extra;
  bool observe = false;                ///< compile so that run_observed() tells values, where the backend can
  capabilities::Switches switches;     ///< which parts of the compiler are off
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
