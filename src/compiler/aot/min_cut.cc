#include "compiler/aot/min_cut.h"

#include <algorithm>

namespace cutaway::aot {

void MinCut::add_edge(uint32_t from, uint32_t to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(edges_.size() - 1);
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<uint32_t>(edges_.size() - 1);
}

bool MinCut::find_levels() {
  level_.assign(first_.size(), kNone);
  std::vector<uint32_t> queue{source_};
  level_[source_] = 0;
  for (size_t head = 0; head < queue.size(); ++head)
    for (uint32_t e = first_[queue[head]]; e != kNone; e = edges_[e].next)
      if (edges_[e].left > 0 && level_[edges_[e].to] == kNone) {
        level_[edges_[e].to] = level_[queue[head]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink_] != kNone;
}

// One path in the level graph, found without recursion: chains of operators may be thousands long.
int64_t MinCut::push() {
  std::vector<uint32_t> path;
  uint32_t v = source_;
  while (v != sink_) {
    uint32_t& e = at_[v];
    while (e != kNone && !(edges_[e].left > 0 && level_[edges_[e].to] == level_[v] + 1)) e = edges_[e].next;
    if (e != kNone) {
      path.push_back(e);
      v = edges_[e].to;
      continue;
    }
    if (path.empty()) return 0;
    level_[v] = kNone;   // a dead end
    v = edges_[path.back() ^ 1].to;
    path.pop_back();
  }
  int64_t amount = kUnbounded;
  for (const uint32_t e : path) amount = std::min(amount, edges_[e].left);
  for (const uint32_t e : path) {
    if (edges_[e].left < kUnbounded) edges_[e].left -= amount;
    if (edges_[e ^ 1].left < kUnbounded) edges_[e ^ 1].left += amount;
  }
  return amount;
}

int64_t MinCut::solve(uint32_t source, uint32_t sink) {
  source_ = source;
  sink_ = sink;
  int64_t total = 0;
  while (find_levels()) {
    at_ = first_;
    while (const int64_t amount = push()) {
      total += amount;
      if (total >= kUnbounded) return kUnbounded;
    }
  }
  return total;
}

std::vector<bool> MinCut::sink_side() const {
  std::vector<bool> side(first_.size(), false);
  std::vector<uint32_t> queue{sink_};
  side[sink_] = true;
  for (size_t head = 0; head < queue.size(); ++head)
    for (uint32_t e = first_[queue[head]]; e != kNone; e = edges_[e].next)
      if (edges_[e ^ 1].left > 0 && !side[edges_[e].to]) {   // the reverse edge leads here
        side[edges_[e].to] = true;
        queue.push_back(edges_[e].to);
      }
  return side;
}

}  // namespace cutaway::aot
