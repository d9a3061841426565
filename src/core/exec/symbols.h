// Symbolic sizes during a run: where each symbol's number is read from the inputs, and what an expression then comes to.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::exec {

using SymbolValues = std::unordered_map<std::string, int64_t>;

/// Finds the numbers of symbols in the inputs of a run: a size or stride of a tensor input that is the symbol itself, or an
/// integer input that has the symbol's name. A size such as s0*2 + 1 with one symbol is solved where nothing else tells.
class SymbolSources {
 public:
  /// For the symbols that `used` expressions name. Refuses one that no input tells.
  static base::Result<SymbolSources> find(const ir::Graph&, const std::vector<ir::Dim>& used);
  /// Throws c10::ValueError when two inputs disagree about a symbol.
  SymbolValues read(const std::vector<c10::IValue>& inputs) const;

 private:
  struct Source {
    enum class From : uint8_t { integer, size, stride };
    std::string symbol;
    size_t input = 0, dim = 0;
    From from = From::integer;
    int64_t factor = 1, offset = 0;   ///< found number = factor * symbol + offset
  };
  std::vector<Source> sources_;
};

/// Throws c10::ValueError on overflow, on division by zero and for a symbol without a value.
int64_t evaluate(const ir::Dim&, const SymbolValues&);
/// The graph at these sizes: every expression is the number that it comes to. Throws as evaluate() does.
ir::Graph at_sizes(const ir::Graph&, const SymbolValues&);

}  // namespace cutaway::exec
