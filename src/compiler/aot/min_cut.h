// The cheapest set of edges that separates a source from a sink (Dinic's algorithm). Knows nothing of graphs of operators.
// Cost: a few passes over the edges for networks such as the split makes, where most capacities are unbounded.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace cutaway::aot {

class MinCut {
 public:
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;
  explicit MinCut(size_t vertices) : first_(vertices, kNone) {}
  void add_edge(uint32_t from, uint32_t to, int64_t capacity);
  /// The capacity of the cut; kUnbounded or more when there is none. Call once.
  int64_t solve(uint32_t source, uint32_t sink);
  /// After solve(): by vertex, true when it is on the sink's side of the cut that lies nearest to the sink.
  std::vector<bool> sink_side() const;

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Edge { uint32_t to, next; int64_t left; };   // its reverse is the edge with the last bit flipped
  bool find_levels();
  int64_t push();

  std::vector<Edge> edges_;
  std::vector<uint32_t> first_, level_, at_;
  uint32_t source_ = 0, sink_ = 0;
};

}  // namespace cutaway::aot
