#include "core/symbolic/size_expressions.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/symbolic/expression.h"

namespace cutaway::symbolic {
namespace {

using ExprKind = ir::SymExpr::Kind;
using ir::Dim;

// Products of more atoms than these, and quotients by larger numbers, do not occur as sizes of tensors.
constexpr size_t kMostAtoms = 12, kMostTerms = 400;
constexpr int64_t kMostDivisor = 256;

// In 128 bits: products of sizes overflow 64 in the middle of a computation whose end fits.
using Wide = __int128;
bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }

}  // namespace

size_t SizeExpressions::Hash::operator()(const Numbers& v) const {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (const int64_t x : v) h = (h ^ static_cast<uint64_t>(x)) * 0xff51afd7ed558ccdull, h ^= h >> 32;
  return h;
}

SizeExpressions::SizeExpressions(const std::vector<std::string>& symbols, const std::vector<std::vector<int64_t>>& samples, std::vector<int64_t> steps)
    : symbols_(symbols.size()), count_(samples.size()), steps_(std::move(steps)) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    Numbers numbers;
    for (const auto& s : samples) numbers.push_back(s[i]);
    auto dim = Dim::symbol(symbols[i]);
    known_.emplace(numbers, dim);
    add_atom(numbers, dim);
  }
}

void SizeExpressions::add_atom(const Numbers& numbers, const Dim& dim) {
  if (atoms_.size() >= kMostAtoms) return;
  const size_t atom = atoms_.size();
  atoms_.emplace_back(numbers, dim);
  std::vector<Term> fresh{{numbers, {atom}}};
  for (size_t i = 0; i < terms_.size() && terms_.size() + fresh.size() < kMostTerms; ++i)
    if (terms_[i].atoms.size() <= 2) {
      Term t = terms_[i];
      bool overflow = false;
      for (size_t k = 0; k < count_; ++k) overflow |= __builtin_mul_overflow(t.numbers[k], numbers[k], &t.numbers[k]);
      if (overflow) continue;
      t.atoms.push_back(atom);
      fresh.push_back(std::move(t));
    }
  Term square{numbers, {atom, atom}};
  bool overflow = false;
  for (size_t k = 0; k < count_; ++k) overflow |= __builtin_mul_overflow(numbers[k], numbers[k], &square.numbers[k]);
  if (!overflow) fresh.push_back(std::move(square));
  terms_.insert(terms_.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
  std::stable_sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.atoms.size() < b.atoms.size(); });
}

// Factors first and the number last, as ir::contiguous_strides writes products.
Dim SizeExpressions::expression(const Term& term, int64_t factor, int64_t offset) const {
  std::vector<Dim> factors;
  for (const size_t a : term.atoms) factors.push_back(atoms_[a].second);
  if (factor != 1) factors.emplace_back(factor);
  const Dim product = factors.size() == 1 ? factors[0] : compose(ExprKind::mul, factors);
  return offset == 0 ? product : compose(ExprKind::add, {product, Dim(offset)});
}

std::optional<Dim> SizeExpressions::as_product(const Numbers& v, const Term& t) const {
  if (t.numbers[0] == 0 || v[0] % t.numbers[0] != 0) return std::nullopt;
  const int64_t factor = v[0] / t.numbers[0];
  for (size_t k = 1; k < count_; ++k)
    if (static_cast<Wide>(factor) * t.numbers[k] != v[k]) return std::nullopt;
  return expression(t, factor, 0);
}

std::optional<Dim> SizeExpressions::as_sum(const Numbers& v, const Term& t) const {
  const Wide run = static_cast<Wide>(t.numbers[1]) - t.numbers[0], rise = static_cast<Wide>(v[1]) - v[0];
  if (run == 0 || rise % run != 0) return std::nullopt;
  const Wide factor = rise / run, offset = v[0] - factor * t.numbers[0];
  if (factor == 0 || !fits(factor) || !fits(offset)) return std::nullopt;
  for (size_t k = 2; k < count_; ++k)
    if (factor * t.numbers[k] + offset != v[k]) return std::nullopt;
  return expression(t, static_cast<int64_t>(factor), static_cast<int64_t>(offset));
}

// factor_a * a + factor_b * b + offset: three unknowns, so it is the fourth recording that checks it.
std::optional<Dim> SizeExpressions::as_sum_of_two(const Numbers& v, const Term& a, const Term& b) const {
  const Wide a1 = static_cast<Wide>(a.numbers[1]) - a.numbers[0], a2 = static_cast<Wide>(a.numbers[2]) - a.numbers[0];
  const Wide b1 = static_cast<Wide>(b.numbers[1]) - b.numbers[0], b2 = static_cast<Wide>(b.numbers[2]) - b.numbers[0];
  const Wide v1 = static_cast<Wide>(v[1]) - v[0], v2 = static_cast<Wide>(v[2]) - v[0];
  const auto small = [](Wide x) { return x > -(Wide{1} << 62) && x < (Wide{1} << 62); };
  if (!small(a1) || !small(a2) || !small(b1) || !small(b2) || !small(v1) || !small(v2)) return std::nullopt;
  const Wide determinant = a1 * b2 - a2 * b1;
  if (determinant == 0) return std::nullopt;
  const Wide over_a = v1 * b2 - v2 * b1, over_b = a1 * v2 - a2 * v1;
  if (over_a % determinant != 0 || over_b % determinant != 0) return std::nullopt;
  const Wide fa = over_a / determinant, fb = over_b / determinant;
  if (fa == 0 || fb == 0 || !small(fa) || !small(fb)) return std::nullopt;
  const Wide offset = v[0] - fa * a.numbers[0] - fb * b.numbers[0];
  if (!fits(offset)) return std::nullopt;
  for (size_t k = 3; k < count_; ++k)
    if (fa * a.numbers[k] + fb * b.numbers[k] + offset != v[k]) return std::nullopt;
  std::vector<Dim> parts{expression(a, static_cast<int64_t>(fa), 0), expression(b, static_cast<int64_t>(fb), 0)};
  if (offset != 0) parts.emplace_back(static_cast<int64_t>(offset));
  return compose(ExprKind::add, parts);
}

// (factor*x + offset)//divisor. What was seen leaves a range of offsets; where the range matters for numbers that x may take, one more
// recording at the number that halves the range is asked for.
std::optional<Dim> SizeExpressions::as_quotient(const Numbers& v, size_t atom) {
  const auto& x = atoms_[atom].first;
  size_t low = 0, high = 0;
  for (size_t k = 1; k < count_; ++k) {
    if (x[k] < x[low]) low = k;
    if (x[k] > x[high]) high = k;
  }
  if (x[high] == x[low]) return std::nullopt;
  for (int64_t q = 2; q <= kMostDivisor; ++q) {
    // The slope, to the nearest: with samples far apart only one factor is possible.
    const Wide rise = (static_cast<Wide>(v[high]) - v[low]) * q, run = static_cast<Wide>(x[high]) - x[low];
    Wide nearest = rise / run;
    if (2 * (rise - nearest * run) >= run) ++nearest;
    if (nearest <= 0 || nearest > kMostDivisor * 16 || std::gcd(static_cast<int64_t>(nearest), q) != 1) continue;
    const int64_t factor = static_cast<int64_t>(nearest);
    Wide from = INT64_MIN, to = INT64_MAX;
    for (size_t k = 0; k < count_; ++k) {
      const Wide base = static_cast<Wide>(v[k]) * q - static_cast<Wide>(factor) * x[k];
      from = std::max(from, base);
      to = std::min(to, base + q - 1);
    }
    if (from > to || !fits(from) || !fits(to)) continue;
    const auto f = static_cast<int64_t>(from), t = static_cast<int64_t>(to);
    if (f != t && atom < symbols_) {
      // Does any number that the symbol may take tell the first offset from the last? Best the one that halves the range.
      const int64_t middle = f + (t - f + 1) / 2;
      std::optional<int64_t> telling;
      for (int64_t j = 0; j < q; ++j) {
        const int64_t at = x[0] + j * steps_[atom];
        if (floor_div(factor * at + f, q) == floor_div(factor * at + t, q)) continue;
        const bool halves = *modulo(factor * at + middle, q) == 0;
        if (!telling || halves) telling = at;
        if (halves) break;
      }
      if (telling) requests_.push_back({atom, *telling});
    }
    const int64_t offset = f <= 0 && t >= 0 ? 0 : std::abs(f) < std::abs(t) ? f : t;
    const Term term{x, {atom}};
    return compose(ExprKind::floor_div, {expression(term, factor, offset), Dim(q)});
  }
  return std::nullopt;
}

// min(e, c) or max(e, c) of an expression met before: it must be seen on both sides, and at least twice on that of the expression.
std::optional<Dim> SizeExpressions::as_bound(const Numbers& v) const {
  const int64_t least = *std::min_element(v.begin(), v.end()), most = *std::max_element(v.begin(), v.end());
  for (const bool is_min : {true, false}) {
    const int64_t bound = is_min ? most : least;
    const auto explains = [&](const Numbers& e) {
      size_t free = 0;
      for (size_t k = 0; k < count_; ++k) {
        if (v[k] == e[k]) free += v[k] != bound;
        else if (v[k] != bound || (is_min ? e[k] < bound : e[k] > bound)) return false;
      }
      return free >= 2;
    };
    for (const auto& [numbers, dim] : atoms_)
      if (explains(numbers)) return compose(is_min ? ExprKind::min : ExprKind::max, {dim, Dim(bound)});
    for (const auto& [numbers, dim] : known_)
      if (dim && dim->is_symbolic() && dim->expr()->kind == ExprKind::add && dim->expr()->operands.size() == 2 && explains(numbers))
        return compose(is_min ? ExprKind::min : ExprKind::max, {*dim, Dim(bound)});
  }
  return std::nullopt;
}

std::optional<Dim> SizeExpressions::derive(const Numbers& v) {
  if (atoms_.empty()) return std::nullopt;   // no symbol, only floats
  for (const auto& t : terms_)
    if (auto d = as_product(v, t)) return d;
  if (count_ < 3) return atoms_[0].second;   // two numbers tell nothing yet: whatever comes of the third
  for (const auto& t : terms_)
    if (t.atoms.size() <= 2)
      if (auto d = as_sum(v, t)) return d;
  if (auto d = as_bound(v)) {
    is_guessed_ = true;
    add_atom(v, *d);
    return d;
  }
  for (size_t a = 0; a < atoms_.size(); ++a)
    if (auto d = as_quotient(v, a)) {
      is_guessed_ = true;
      add_atom(v, *d);
      return d;
    }
  for (size_t i = 0; i < terms_.size(); ++i)
    for (size_t j = i + 1; j < terms_.size() && terms_[j].atoms.size() <= 2; ++j)
      if (auto d = as_sum_of_two(v, terms_[i], terms_[j])) {
        // Products with factors fit a few numbers as roundings do; s0 + s1 is what it looks like.
        is_guessed_ = is_guessed_ || std::ranges::any_of(d->expr()->operands, [](const auto& e) { return e->kind == ExprKind::mul; });
        add_atom(v, *d);   // a view of what was joined divides it
        return d;
      }
  return std::nullopt;
}

std::optional<Dim> SizeExpressions::define(std::span<const int64_t> values, const Dim& d) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t x) { return x == values[0]; })) return Dim(values[0]);
  Numbers v(values.begin(), values.end());
  auto [it, is_new] = known_.try_emplace(v, d);
  if (!is_new && !it->second) it->second = d;   // looked for in vain before
  if (*it->second == d) {
    if (is_new) add_atom(v, d);
    return std::nullopt;
  }
  return it->second;
}

std::optional<Dim> SizeExpressions::find(std::span<const int64_t> values) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t x) { return x == values[0]; })) return Dim(values[0]);
  Numbers v(values.begin(), values.end());
  if (const auto it = known_.find(v); it != known_.end()) return it->second;
  auto found = derive(v);
  known_.emplace(std::move(v), found);
  return found;
}

}  // namespace cutaway::symbolic
