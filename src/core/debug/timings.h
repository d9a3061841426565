// compile_times(): a view of the event stream that adds up how long the phases of compiling took, by phase and function.
// A phase belongs to the function that its "function" field names, or that of the nearest phase around it. Times include
// what ran inside. Phases of topics that are not part of compiling (running a graph) are not counted, so it stays small.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/debug/events.h"

namespace cutaway::debug {

struct TimingRow {
  std::string phase;             ///< "capture", "native.fuse": topic and name, the topic alone when both are the same
  std::string function;          ///< empty: no function was named
  std::vector<double> seconds;   ///< one value a compilation, in order
  double sum() const;
};

class Timings final : public Sink {
 public:
  void write(const Event&) override;
  bool wants(std::string_view, Level) const override { return false; }
  bool wants_phase(std::string_view topic, Level) const override;
  /// In the order in which phases first ended.
  std::vector<TimingRow> rows() const;
  /// A table with a line a phase and function: how often, in all, each.
  std::string text() const;
  /// Forgets what was counted; phases that are open go on.
  void reset();

 private:
  struct Open {
    std::string function;
    uint64_t start_us;
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Open> open_;
  std::vector<TimingRow> rows_;
  std::map<std::pair<std::string, std::string>, size_t> row_of_;
};

}  // namespace cutaway::debug
