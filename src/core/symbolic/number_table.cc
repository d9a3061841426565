#include "core/symbolic/number_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/bits.h"

namespace cutaway::symbolic {

using StepKind = NumberStep::Kind;

bool Number::same_as(const Number& o) const {
  return is_float == o.is_float && (is_float ? base::same_bits(floating, o.floating) : integer == o.integer);
}
std::string Number::text() const {
  if (!is_float) return std::to_string(integer);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", floating);
  return buffer;
}

bool has_one_operand(StepKind k) { return k >= StepKind::neg && k <= StepKind::tanh; }

namespace {
double as_float(const Number& n) { return n.is_float ? n.floating : static_cast<double>(n.integer); }
/// Exact for both: comparisons between an int and a float are, in Python.
long double exact(const Number& n) { return n.is_float ? static_cast<long double>(n.floating) : static_cast<long double>(n.integer); }
static_assert(std::numeric_limits<long double>::digits >= 64, "comparisons of 64-bit integers with doubles need a wide long double");

/// As CPython divides floats: quotient rounded down, and a remainder with the divisor's sign.
std::pair<double, double> divide(double a, double b) {
  double r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0) { if ((r < 0) != (b < 0)) { r += b; q -= 1; } }
  else r = std::copysign(0.0, b);
  if (q != 0) { const double low = std::floor(q); q = q - low > 0.5 ? low + 1 : low; }
  else q = std::copysign(0.0, a / b);
  return {q, r};
}
std::optional<double> finite(double d) { return std::isfinite(d) ? std::optional(d) : std::nullopt; }
}  // namespace

std::optional<double> compute_number(StepKind kind, const Number& left, const Number& right) {
  const double a = as_float(left), b = as_float(right);
  switch (kind) {
    case StepKind::add: return a + b;
    case StepKind::sub: return a - b;
    case StepKind::mul: return a * b;
    case StepKind::truediv:
      if (b == 0) return std::nullopt;
      if (!left.is_float && !right.is_float) return static_cast<double>(static_cast<long double>(left.integer) / static_cast<long double>(right.integer));
      return a / b;
    case StepKind::floordiv: return b == 0 ? std::nullopt : std::optional(divide(a, b).first);
    case StepKind::mod: return b == 0 ? std::nullopt : std::optional(divide(a, b).second);
    case StepKind::pow: return a > 0 && std::isfinite(a) && std::isfinite(b) ? finite(std::pow(a, b)) : std::nullopt;
    case StepKind::min: return right.is_float && left.is_float ? std::optional(b < a ? b : a) : std::nullopt;   // the first, where neither is less
    case StepKind::max: return right.is_float && left.is_float ? std::optional(b > a ? b : a) : std::nullopt;
    case StepKind::neg: return -a;
    case StepKind::abs: return std::fabs(a);
    case StepKind::to_float: return a;
    case StepKind::sqrt: return a >= 0 && std::isfinite(a) ? std::optional(std::sqrt(a)) : std::nullopt;
    case StepKind::exp: return std::isfinite(a) ? finite(std::exp(a)) : std::nullopt;
    case StepKind::log: return a > 0 && std::isfinite(a) ? std::optional(std::log(a)) : std::nullopt;
    case StepKind::sin: return std::isfinite(a) ? std::optional(std::sin(a)) : std::nullopt;
    case StepKind::cos: return std::isfinite(a) ? std::optional(std::cos(a)) : std::nullopt;
    case StepKind::tanh: return std::isfinite(a) ? std::optional(std::tanh(a)) : std::nullopt;
    default: return std::nullopt;
  }
}

bool answer(StepKind kind, const Number& left, const Number& right) {
  switch (kind) {
    case StepKind::equal: return exact(left) == exact(right);
    case StepKind::not_equal: return exact(left) != exact(right);
    case StepKind::less: return exact(left) < exact(right);
    case StepKind::less_equal: return exact(left) <= exact(right);
    case StepKind::same: return left.same_as(right);
    default: return false;
  }
}

void NumberTable::add_symbol(size_t index, const std::vector<double>& values) {
  Bits bits;
  for (const double v : values) bits.push_back(std::bit_cast<uint64_t>(v));
  known_.try_emplace(std::move(bits), NumberTerm{NumberTerm::From::symbol, {}, {}, index});
}

std::optional<NumberTerm> NumberTable::find(const std::vector<double>& values) const {
  Bits bits;
  bool same = true;
  for (const double v : values) {
    bits.push_back(std::bit_cast<uint64_t>(v));
    same = same && bits.back() == bits.front();
  }
  if (same) return NumberTerm{NumberTerm::From::constant, Number::of(values.front()), {}, 0};
  const auto found = known_.find(bits);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<NumberTerm> NumberTable::operand(const std::vector<Number>& all) {
  if (all.front().is_float) {
    std::vector<double> values;
    for (const Number& n : all) {
      if (!n.is_float) return std::nullopt;
      values.push_back(n.floating);
    }
    return find(values);
  }
  std::vector<int64_t> values;
  bool same = true;
  for (const Number& n : all) {
    if (n.is_float) return std::nullopt;
    values.push_back(n.integer);
    same = same && n.integer == values.front();
  }
  if (same) return NumberTerm{NumberTerm::From::constant, Number::of(values.front()), {}, 0};
  auto found = explain_(values);
  if (!found) return std::nullopt;
  return NumberTerm{NumberTerm::From::integer, {}, std::move(*found), 0};
}

namespace {
bool is_same(const NumberTerm& a, const NumberTerm& b) {
  return a.from == b.from && a.index == b.index && a.integer == b.integer && (a.from != NumberTerm::From::constant || a.constant.same_as(b.constant));
}
bool is_same(const NumberProgram::Step& a, const NumberProgram::Step& b) { return a.kind == b.kind && is_same(a.left, b.left) && is_same(a.right, b.right); }
}  // namespace

base::Status NumberTable::add_steps(const std::vector<const std::vector<NumberStep>*>& all) {
  using base::Error;
  const auto& first = *all.front();
  for (const auto* other : all) {
    if (other->size() != first.size()) return Error{.what = "the program takes another way at other numbers"};
    for (size_t i = 0; i < first.size(); ++i)
      if ((*other)[i].kind != first[i].kind || (*other)[i].holds != first[i].holds)
        return Error{.what = "the program takes another way at other numbers", .because = first[i].where.empty() ? "" : "as asked at " + first[i].where};
  }
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Number> lefts, rights;
    std::vector<double> results;
    for (const auto* steps : all) {
      lefts.push_back((*steps)[i].left);
      rights.push_back((*steps)[i].right);
      results.push_back((*steps)[i].result);
    }
    auto left = operand(lefts), right = operand(rights);
    if (!left || !right) return Error{.what = "the program computes with a number that nothing explains"};
    using From = NumberTerm::From;
    if (left->from == From::constant && right->from == From::constant) continue;
    const NumberProgram::Step step{first[i].kind, *left, *right};
    if (first[i].is_question()) {
      if (std::ranges::none_of(program_.guards, [&](const auto& q) { return q.holds == first[i].holds && is_same(q.asked, step); }))
        program_.guards.push_back({step, first[i].holds, first[i].where.empty() ? "the program asks" : "asked at " + first[i].where});
      continue;
    }
    // What the numbers alone cannot tell apart (x + 0.0 is x but for -0.0) must be the same at every call.
    program_.steps.push_back(step);
    const NumberTerm made{From::step, {}, {}, program_.steps.size() - 1};
    if (auto other = find(results)) {
      if (other->from == From::step && is_same(program_.steps[other->index], step)) {   // computed once more
        program_.steps.pop_back();
        continue;
      }
      program_.guards.push_back({{StepKind::same, made, *other}, true, "the program computes it"});
      continue;
    }
    Bits bits;
    for (const double r : results) bits.push_back(std::bit_cast<uint64_t>(r));
    known_.emplace(std::move(bits), made);
  }
  return {};
}

std::string NumberProgram::text(const NumberTerm& t, const std::vector<std::string>& symbols) const {
  static constexpr const char* kSigns[] = {" + ", " - ", "*", "/", "//", " % ", "**", " min ", " max ", "-", "abs", "float", "sqrt", "exp", "log", "sin", "cos", "tanh"};
  switch (t.from) {
    case NumberTerm::From::constant: return t.constant.text();
    case NumberTerm::From::integer: return t.integer.text();
    case NumberTerm::From::symbol: return symbols[t.index];
    case NumberTerm::From::step: break;
  }
  const Step& s = steps[t.index];
  const std::string sign = kSigns[static_cast<size_t>(s.kind)];
  if (has_one_operand(s.kind)) return sign + "(" + text(s.left, symbols) + ")";
  return "(" + text(s.left, symbols) + sign + text(s.right, symbols) + ")";
}
std::string NumberProgram::text(const Question& q, const std::vector<std::string>& symbols) const {
  static constexpr const char* kSigns[] = {" == ", " != ", " < ", " <= ", " is the same number as "};
  const std::string asked = text(q.asked.left, symbols) + kSigns[static_cast<size_t>(q.asked.kind) - static_cast<size_t>(StepKind::equal)] + text(q.asked.right, symbols);
  return q.holds ? asked : "not " + asked;
}

}  // namespace cutaway::symbolic
