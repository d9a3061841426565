// Floating-point numbers that depend on sizes: 2/(n - 1) in the backward of a variance, 1/sqrt(d) in an attention. Given what such a number
// was in several recordings, the ways to write it as arithmetic on one integer. The integer is then explained by size_expressions.h.
// Internal to core/symbolic.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cutaway::symbolic {

struct FloatForm {
  enum class Kind : uint8_t {
    whole,          ///< float(n)
    quotient,       ///< numerator / n
    root,           ///< sqrt(n)
    inverse_root,   ///< 1 / sqrt(n)
    power,          ///< n ** operand, which may differ from a root in the last bit
  };
  Kind kind = Kind::whole;
  double operand = 1;                ///< the numerator of a quotient, the exponent of a power
  std::vector<int64_t> integers;     ///< n in each recording
};

/// Every form that gives exactly these numbers, to the last bit, the simplest first.
std::vector<FloatForm> float_forms(std::span<const double> values);

}  // namespace cutaway::symbolic
