#include "core/ir/type_rules.h"

#include <algorithm>
#include <cstdint>

#include "core/ir/spelling.h"

namespace cutaway::ir {
namespace {

constexpr int kMaxDepth = 16;   // with the depth that verify() allows for what is around it, within what the parser reads

std::string breach_of(const SymExpr& e, int depth) {
  using K = SymExpr::Kind;
  if (depth > kMaxDepth) return "a symbolic size is nested more than 16 deep";
  if (e.kind == K::constant) return {};
  if (e.kind == K::symbol) return is_identifier(e.symbol) ? "" : "a symbol is not a word of letters, digits and '_'";
  const bool two = e.kind == K::floor_div || e.kind == K::mod;
  if (e.operands.size() < 2 || (two && e.operands.size() > 2)) return "a symbolic size has an operation with the wrong number of operands";
  for (const auto& operand : e.operands) {
    if (!operand) return "a symbolic size has an operand that is missing";
    if (std::string problem = breach_of(*operand, depth + 1); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::string breach_of(const Dim& d) { return d.is_symbolic() ? breach_of(*d.expr(), 1) : std::string(); }

std::string breach_of(const TensorType& t) {
  if (static_cast<int>(t.dtype) >= kDTypeCount) return "the dtype is not known";
  for (const auto* list : {&t.sizes, &t.strides})
    for (const Dim& d : *list) {
      if (std::string problem = breach_of(d); !problem.empty()) return problem;
      if (!d.is_symbolic() && d.value() < 0)
        return (list == &t.sizes ? "the size " : "the stride ") + std::to_string(d.value()) + " is negative";
    }
  if (t.strides.size() != t.sizes.size())
    return std::to_string(t.strides.size()) + " strides for " + std::to_string(t.sizes.size()) + " sizes";
  int64_t bytes = dtype_bytes(t.dtype);
  for (const Dim& d : t.sizes)   // a size of 0 counts as 1, as in the strides, which must fit as well
    if (!d.is_symbolic() && __builtin_mul_overflow(bytes, std::max<int64_t>(d.value(), 1), &bytes)) return "the sizes are too large: their product does not fit into 63 bits";
  if (t.device.index < -1 || t.device.index > Device::kMaxIndex) return "the index of the device is not between 0 and 127";
  if (!is_identifier(t.device.type)) return "the device has a name that is not a word";
  return {};
}

}  // namespace cutaway::ir
