// An integer expression over sizes, made ready to be computed at every call: symbols are positions in a list of numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ir/type.h"

namespace cutaway::symbolic { struct Guard; }

namespace cutaway::frames {

class SizeExpression {
 public:
  /// None where a symbol is not among the names.
  static std::optional<SizeExpression> make(const ir::Dim&, const std::vector<std::string>& names);
  /// None on overflow and on division by zero.
  std::optional<int64_t> at(const std::vector<int64_t>& numbers) const;

 private:
  struct Step { ir::SymExpr::Kind kind; int64_t number = 0; };   // a constant, the position of a symbol, or how many operands to combine
  bool add(const ir::SymExpr&, const std::vector<std::string>& names, size_t depth);
  static constexpr size_t kDepth = 32;
  std::vector<Step> steps_;   // operands first
};

/// The guard as a question about numbers; empty where it names a symbol that is not among the names. Overflow does not hold.
std::function<bool(const std::vector<int64_t>&)> size_test(const symbolic::Guard&, const std::vector<std::string>& names);
/// Text of a guard or an expression with symbols as the user knows them: "x.shape[0] <= 512".
std::string with_names(const std::string& text, const std::vector<std::string>& symbols, const std::vector<std::string>& shown);

}  // namespace cutaway::frames
