#include "core/ir/argument.h"

#include <cmath>

#include "core/base/bits.h"

namespace cutaway::ir {
namespace {
bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return base::same_bits(a, b);
}
}  // namespace

bool Argument::operator==(const Argument& o) const {
  if (v.index() != o.v.index()) return false;
  if (auto* x = as<double>()) return same_number(*x, *o.as<double>());
  if (auto* x = as<std::complex<double>>()) {
    auto* y = o.as<std::complex<double>>();
    return same_number(x->real(), y->real()) && same_number(x->imag(), y->imag());
  }
  return v == o.v;
}

}  // namespace cutaway::ir
