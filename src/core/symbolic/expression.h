// Integer expressions over symbols, computed: the one evaluator. Symbols are slots, positions in a list of numbers, so that a call asks no
// map. Arithmetic is Python's: quotients round down, and a remainder has the divisor's sign. What does not fit into 64 bits has no value.
// Main type: Expression.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::symbolic {

/// a // b as Python divides; none where b is 0, or the result does not fit.
std::optional<int64_t> floor_div(int64_t a, int64_t b);
/// a % b, with the sign of b; none where b is 0.
std::optional<int64_t> modulo(int64_t a, int64_t b);

/// An expression of these operands, two or more.
ir::Dim compose(ir::SymExpr::Kind, const std::vector<ir::Dim>& operands);

class Expression {
 public:
  /// None where a symbol is not among the names.
  static std::optional<Expression> make(const ir::Dim&, std::span<const std::string> names);
  /// numbers[i] is that of names[i]. None on overflow and on division by zero.
  std::optional<int64_t> at(std::span<const int64_t> numbers) const {
    if (steps_.empty()) return number_;
    return is_symbol_ ? std::optional(numbers[static_cast<size_t>(number_)]) : run(numbers);
  }

 private:
  struct Step { ir::SymExpr::Kind kind; int64_t number = 0; };   // a constant, the slot of a symbol, or how many operands to combine
  bool add(const ir::SymExpr&, std::span<const std::string> names, size_t depth);
  std::optional<int64_t> run(std::span<const int64_t> numbers) const;
  bool is_symbol_ = false;
  int64_t number_ = 0;        // of a constant; or the slot of the one symbol
  size_t depth_ = 0;
  std::vector<Step> steps_;   // operands first; empty for a constant
};

/// Symbols and the number of each, by slot. The names are shared: a copy copies numbers.
class SymbolValues {
 public:
  SymbolValues() = default;
  SymbolValues(std::initializer_list<std::pair<std::string, int64_t>>);
  SymbolValues(std::shared_ptr<const std::vector<std::string>> names, std::vector<int64_t> numbers) : names_(std::move(names)), numbers_(std::move(numbers)) {}
  SymbolValues(std::vector<std::string> names, std::vector<int64_t> numbers) : SymbolValues(std::make_shared<const std::vector<std::string>>(std::move(names)), std::move(numbers)) {}
  bool empty() const { return numbers_.empty(); }
  std::span<const std::string> names() const { return names_ ? std::span<const std::string>(*names_) : std::span<const std::string>(); }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  /// The same symbols with other numbers.
  SymbolValues with(std::vector<int64_t> numbers) const { return {names_, std::move(numbers)}; }
  /// None for a symbol without a number.
  std::optional<int64_t> find(std::string_view name) const;
  void set(const std::string& name, int64_t number);
  bool operator==(const SymbolValues&) const;

 private:
  std::shared_ptr<const std::vector<std::string>> names_;
  std::vector<int64_t> numbers_;
};

/// What the expression comes to. Refuses a symbol without a value, overflow and division by zero.
base::Result<int64_t> evaluate(const ir::Dim&, const SymbolValues&);
/// Every expression among the arguments of nodes and outputs becomes the number that it comes to. Refuses as evaluate() does.
base::Status settle(ir::Block&, const SymbolValues&);
/// The graph at these sizes: every expression is the number that it comes to. Refuses as evaluate() does.
base::Result<ir::Graph> at_sizes(const ir::Graph&, const SymbolValues&);
/// The same for arguments alone.
base::Result<std::vector<ir::Argument>> at_sizes(std::vector<ir::Argument>, const SymbolValues&);

}  // namespace cutaway::symbolic
