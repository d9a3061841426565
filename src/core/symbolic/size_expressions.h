// From numbers to expressions: given what an integer was in several recordings, the expression over the symbols that explains it.
// Tried in this order: a constant, an expression met before, a product of symbols, a sum with a constant, a sum of two products, a
// floor division, min and max with a constant. Expressions found become building blocks of later ones, so that c*((s0 + 1)//2) is found
// once (s0 + 1)//2 was. Internal to core/symbolic.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/type.h"

namespace cutaway::symbolic {

class SizeExpressions {
 public:
  /// samples[k][i]: the number that symbol i had in recording k. `steps[i]`: the symbol only takes values that differ by multiples of it.
  SizeExpressions(const std::vector<std::string>& symbols, const std::vector<std::vector<int64_t>>& samples, std::vector<int64_t> steps);

  /// values[k]: what the integer was in recording k. None when no expression of the family explains it.
  std::optional<ir::Dim> find(std::span<const int64_t> values);

  /// What is known to have given these values. Where another expression is known for them already, that one is returned: both must agree.
  std::optional<ir::Dim> define(std::span<const int64_t> values, const ir::Dim&);

  /// A number for a symbol at which a further recording would tell apart expressions that all fit what was seen.
  struct Request { size_t symbol = 0; int64_t value = 0; };
  const std::vector<Request>& requests() const { return requests_; }
  /// A rounding, a minimum or maximum, or a sum of products was found that nobody reported: it fits what was seen, which may have nothing to do with it.
  bool is_guessed() const { return is_guessed_; }

 private:
  using Numbers = std::vector<int64_t>;
  struct Hash { size_t operator()(const Numbers&) const; };
  struct Term { Numbers numbers; std::vector<size_t> atoms; };   ///< a product of atoms

  std::optional<ir::Dim> derive(const Numbers&);
  std::optional<ir::Dim> as_product(const Numbers&, const Term&) const;
  std::optional<ir::Dim> as_sum(const Numbers&, const Term&) const;
  std::optional<ir::Dim> as_sum_of_two(const Numbers&, const Term&, const Term&) const;
  std::optional<ir::Dim> as_quotient(const Numbers&, size_t atom);
  std::optional<ir::Dim> as_bound(const Numbers&) const;
  void add_atom(const Numbers&, const ir::Dim&);
  ir::Dim expression(const Term&, int64_t factor, int64_t offset) const;

  size_t symbols_ = 0, count_ = 0;
  std::vector<int64_t> steps_;
  std::vector<std::pair<Numbers, ir::Dim>> atoms_;   ///< the symbols first
  std::vector<Term> terms_;                          ///< products of one, two and three atoms, in that order
  std::unordered_map<Numbers, std::optional<ir::Dim>, Hash> known_;
  std::vector<Request> requests_;
  bool is_guessed_ = false;
};

}  // namespace cutaway::symbolic
