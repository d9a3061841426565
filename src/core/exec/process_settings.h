// Settings of the process that decide what operators compute, as text by name: how a bundle keeps those that are not torch's defaults, and sets them around
// a trial. The switches of process_state.h are among them, under their setter's name without "_set_".
#pragma once
#include <map>
#include <string>

#include "core/base/result.h"

namespace cutaway::exec {

/// Those that differ from what torch starts with: "default_dtype": "f64", "deterministic_algorithms": "1", "float32_matmul_precision": "medium",
/// "flush_denormal": "1", ….  A bundle may also say "threads", "compilations" and "calls": how often the graph is compiled and run in one process, and what is compiled called, before it counts.
std::map<std::string, std::string> process_settings_now();
/// The Error names a setting or a value that is not known.
base::Status check_process_settings(const std::map<std::string, std::string>&);

/// All settings as given, those not given at their defaults, for its lifetime. "threads", "compilations" and "calls" are the caller's.
class ProcessScope {
 public:
  explicit ProcessScope(const std::map<std::string, std::string>&);
  ~ProcessScope();
  ProcessScope(const ProcessScope&) = delete;
  ProcessScope& operator=(const ProcessScope&) = delete;

 private:
  std::map<std::string, std::string> before_;
};

}  // namespace cutaway::exec
