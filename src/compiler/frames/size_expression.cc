#include "compiler/frames/size_expression.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/trace/symbolic.h"

namespace cutaway::frames {

using Kind = ir::SymExpr::Kind;

bool SizeExpression::add(const ir::SymExpr& e, const std::vector<std::string>& names, size_t depth) {
  if (e.kind == Kind::constant) { steps_.push_back({e.kind, e.constant}); return depth < kDepth; }
  if (e.kind == Kind::symbol) {
    const auto found = std::find(names.begin(), names.end(), e.symbol);
    steps_.push_back({e.kind, found - names.begin()});
    return found != names.end() && depth < kDepth;
  }
  for (size_t i = 0; i < e.operands.size(); ++i)
    if (!add(*e.operands[i], names, depth + i)) return false;
  steps_.push_back({e.kind, static_cast<int64_t>(e.operands.size())});
  return true;
}

std::optional<SizeExpression> SizeExpression::make(const ir::Dim& d, const std::vector<std::string>& names) {
  SizeExpression out;
  if (!d.is_symbolic()) out.steps_.push_back({Kind::constant, d.value()});
  else if (!out.add(*d.expr(), names, 0)) return std::nullopt;
  return out;
}

std::optional<int64_t> SizeExpression::at(const std::vector<int64_t>& numbers) const {
  std::array<int64_t, kDepth + 1> stack;
  size_t top = 0;
  for (const Step& s : steps_) {
    if (s.kind == Kind::constant) { stack[top++] = s.number; continue; }
    if (s.kind == Kind::symbol) { stack[top++] = numbers[static_cast<size_t>(s.number)]; continue; }
    top -= static_cast<size_t>(s.number);
    int64_t total = stack[top];
    for (int64_t i = 1; i < s.number; ++i) {
      const int64_t x = stack[top + static_cast<size_t>(i)];
      bool bad = false;
      switch (s.kind) {
        case Kind::add: bad = __builtin_add_overflow(total, x, &total); break;
        case Kind::mul: bad = __builtin_mul_overflow(total, x, &total); break;
        case Kind::min: total = std::min(total, x); break;
        case Kind::max: total = std::max(total, x); break;
        default: {   // as Python rounds: down
          if (x == 0 || (x == -1 && total == INT64_MIN)) return std::nullopt;
          int64_t q = total / x, r = total % x;
          if (r != 0 && (r < 0) != (x < 0)) { --q; r += x; }
          total = s.kind == Kind::mod ? r : q;
        }
      }
      if (bad) return std::nullopt;
    }
    stack[top++] = total;
  }
  return stack[0];
}

std::function<bool(const std::vector<int64_t>&)> size_test(const symbolic::Guard& g, const std::vector<std::string>& names) {
  auto left = SizeExpression::make(g.left, names), right = SizeExpression::make(g.right, names);
  if (!left || !right) return {};
  return [l = std::move(*left), r = std::move(*right), kind = g.kind](const std::vector<int64_t>& numbers) {
    const auto a = l.at(numbers), b = r.at(numbers);
    if (!a || !b) return false;
    switch (kind) {
      case symbolic::Condition::Kind::equal: return *a == *b;
      case symbolic::Condition::Kind::not_equal: return *a != *b;
      case symbolic::Condition::Kind::less: return *a < *b;
      case symbolic::Condition::Kind::less_equal: return *a <= *b;
    }
    return false;
  };
}

std::string with_names(const std::string& text, const std::vector<std::string>& symbols, const std::vector<std::string>& shown) {
  std::string out;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == i) { out += text[i++]; continue; }
    const std::string word = text.substr(i, end - i);
    const auto found = std::find(symbols.begin(), symbols.end(), word);
    out += found == symbols.end() ? word : shown[static_cast<size_t>(found - symbols.begin())];
    i = end;
  }
  return out;
}

}  // namespace cutaway::frames
