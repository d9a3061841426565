// Inputs of hundreds of megabytes: every candidate would take a minute and gigabytes. So their sizes come down first, for the whole graph.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {

constexpr uint64_t kLargeInputs = uint64_t{16} << 20;   // bytes; what is below is searched with as it is

struct Shrunk {
  minify::Case smaller;          ///< its inputs are in the same store
  oracle::TrialResult failure;   ///< how it fails
  uint64_t bytes_before = 0, bytes_after = 0, candidates = 0;
  std::string text() const;
};
struct ShrinkOptions {
  oracle::OracleOptions oracle;   ///< what is asked; the store of its pattern is written to
  double time_budget_s = 180;
  std::function<void(const std::string&)> on_step;
};
/// The same graph with smaller inputs that fails as is wanted; none where the inputs are not large, or nothing smaller fails. The start itself is
/// not run. `helper` knows the graph's operators: it infers shapes and stores what is left.
base::Result<std::optional<Shrunk>> shrink_first(const minify::Case& start, worker::Client& backend, worker::Client& helper, const ShrinkOptions&);

}  // namespace cutaway::flows
