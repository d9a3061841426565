// The guards of a graph with symbolic sizes, ready to be asked about the inputs of a run.
#pragma once
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/exec/symbols.h"
#include "core/symbolic/guard.h"

namespace cutaway::exec {

class SizeGuards {
 public:
  /// Refuses guards about a symbol that no input tells.
  static base::Result<SizeGuards> prepare(const ir::Graph&, std::vector<symbolic::Guard>);
  /// Empty when the graph may run on these inputs; else why not: the first guard that fails, with the numbers, or inputs that
  /// disagree about a symbol or have sizes that the graph's types deny. Thread-safe.
  std::string check(const std::vector<c10::IValue>& inputs) const;
  const std::vector<symbolic::Guard>& guards() const { return guards_; }

 private:
  struct Fixed { size_t input = 0; std::vector<symbolic::Expression> sizes; };
  SymbolSources symbols_;
  std::vector<symbolic::Guard> guards_;
  std::vector<symbolic::GuardTest> tests_;   ///< of the guards, in their order
  std::vector<Fixed> inputs_;   ///< those with a symbolic size: every other size of theirs is a number
};

}  // namespace cutaway::exec
