#include "core/ir/argument.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace cutaway::ir {
namespace {
bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
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
