// Numbers by their bits: 0.0 and -0.0 are two numbers, and a NaN is the one that it was.
#pragma once
#include <bit>
#include <cstdint>

namespace cutaway::base {

/// Unlike ==, for which 0.0 is -0.0 and no NaN is itself.
inline bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace cutaway::base
