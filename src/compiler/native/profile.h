// Where the time of compiled graphs goes: every kernel, product and operator of torch's is timed as it runs. What is off costs nothing.
// Main types: GraphTimes, of one compiled graph, and the functions of the process's profile.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/generate.h"
#include "core/base/json.h"
#include "core/exec/interpreter.h"

namespace cutaway::native {

struct StepTime {
  std::string name;              ///< "native.k3", "aten.convolution"
  std::string kind;              ///< kernel, product, torch
  std::string computes, place;   ///< operators with their lines; the user's line
  std::string text;              ///< of a kernel
  int64_t bytes = 0, operations = 0;   ///< of one call; 0: not known
  int64_t calls = 0, total_ns = 0, least_ns = 0;
};

class GraphTimes {
 public:
  explicit GraphTimes(const codegen::Program&);
  /// Runs the program, whose calls are watched().
  std::vector<c10::IValue> run(const exec::Program&, std::vector<c10::IValue>& inputs);
  base::Json to_json() const;
  std::string text() const;
  const std::string& name() const { return name_; }

 private:
  friend class TimingWatcher;
  void add(ir::ValueId result, uint64_t start_us, int64_t ns);
  std::string name_;
  mutable std::mutex mutex_;
  std::vector<StepTime> steps_;
  std::unordered_map<ir::ValueId, size_t> step_of_;   ///< by a step's first result
  int64_t calls_ = 0, total_ns_ = 0;
};

/// Graphs that are compiled from now on are timed.
void start_profile();
bool is_profiling();
/// Told by a graph that is timed.
void join_profile(std::shared_ptr<GraphTimes>);

/// What was measured so far, with the machine's limits: a table for people, {"graphs", "limits"}, and a timeline in the form of Chrome's traces (Perfetto opens it).
std::string profile_text();
std::string profile_json();
std::string profile_timeline();

}  // namespace cutaway::native
