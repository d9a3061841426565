// Random graphs of torch's operators, for `cutaway sweep`: the same seed gives the same graph on every machine. Text work only: no libtorch.
// What goes in: a seed and a few limits. What comes out: a graph whose sizes fit, and seeded inputs for it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::generate {

struct RandomOptions {
  uint64_t seed = 0;
  int nodes = 12;          ///< operators, about
  int64_t most_size = 9;   ///< of one dimension
};

struct RandomCase {
  ir::Graph graph;
  bundle::Manifest manifest;
};
/// Sizes and dtypes are right; strides are written as if every result were contiguous, so that a caller who shows them types the graph anew.
/// Every value that nothing else uses is returned. Floating inputs ask for gradients.
RandomCase random_case(const RandomOptions&);

/// The operators that may occur, sorted: for documentation and tests.
std::vector<std::string> random_operators();

}  // namespace cutaway::generate
