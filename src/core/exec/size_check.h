// Sizes that were found by recording at a few numbers, checked at others: the graph is run on fake tensors of just these sizes, and what its
// operators give must be what it says. Asked once for each choice of numbers.
// Main type: SizeCheck.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/exec/symbols.h"
#include "core/ir/graph.h"

namespace cutaway::exec {

class SizeCheck {
 public:
  /// Of a graph whose sizes name these symbols.
  SizeCheck(ir::Graph graph, std::vector<std::string> symbols) : graph_(std::move(graph)), symbols_(std::make_shared<const std::vector<std::string>>(std::move(symbols))) {}
  /// Whether the graph's sizes are its operators' where symbol i has the number `numbers[i]`. Thread-safe.
  bool holds(const std::vector<int64_t>& numbers);

 private:
  bool check(const std::vector<int64_t>& numbers) const;
  ir::Graph graph_;
  std::shared_ptr<const std::vector<std::string>> symbols_;
  std::mutex mutex_;
  std::map<std::vector<int64_t>, bool> known_;
};

}  // namespace cutaway::exec
