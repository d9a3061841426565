#include "core/symbolic/float_expressions.h"

#include <cmath>

namespace cutaway::symbolic {
namespace {

constexpr double kLargest = 9007199254740992.0;   // 2^53: beyond it not every integer is a double
constexpr double kNumerators[] = {1, 2, -1, -2, 0.5, -0.5, 3, 4, 0.25, -3, -4, 6};

/// The integer nearest to guess(v) for each value, if `again` gives the value back exactly.
template <class Guess, class Again> void try_form(std::span<const double> values, FloatForm form, Guess&& guess, Again&& again, std::vector<FloatForm>& forms) {
  for (const double v : values) {
    const double n = std::nearbyint(guess(v));
    if (!(std::fabs(n) < kLargest) || again(n) != v) return;
    form.integers.push_back(static_cast<int64_t>(n));
  }
  forms.push_back(std::move(form));
}

}  // namespace

std::vector<FloatForm> float_forms(std::span<const double> values) {
  using Kind = FloatForm::Kind;
  std::vector<FloatForm> forms;
  const auto inverse_root = [](double v) { return 1 / std::sqrt(v); };
  try_form(values, {Kind::whole, 1, {}}, [](double v) { return v; }, [](double n) { return n; }, forms);
  for (const double numerator : kNumerators) {
    const auto quotient = [&](double v) { return numerator / v; };
    try_form(values, {Kind::quotient, numerator, {}}, quotient, quotient, forms);
  }
  try_form(values, {Kind::root, 1, {}}, [](double v) { return v > 0 ? v * v : std::nan(""); }, [](double n) { return std::sqrt(n); }, forms);
  try_form(values, {Kind::inverse_root, 1, {}}, [](double v) { return v > 0 ? 1 / (v * v) : std::nan(""); }, inverse_root, forms);
  for (const double exponent : {-0.5, 0.5, -0.25, 0.25, 1.5, -1.5})
    try_form(values, {Kind::power, exponent, {}}, [&](double v) { return v > 0 ? std::pow(v, 1 / exponent) : std::nan(""); }, [&](double n) { return std::pow(n, exponent); }, forms);
  return forms;
}

}  // namespace cutaway::symbolic
