// How elements of each format are read into a tile: strided, converted, with the lazy bits of a view applied.
// Included by element_pass.cc alone, which is compiled once with its own flags.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e4m3fnuz.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e5m2fnuz.h>
#include <c10/util/Float8_e8m0fnu.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "diagnosis/compare/element_pass.h"

#define CUTAWAY_INLINE [[gnu::always_inline]] inline

namespace cutaway::compare {

/// The pairs (format, C++ type of one component in memory).
#define CUTAWAY_REAL_FORMATS(X)                                                                                        \
  X(boolean, uint8_t) X(u8, uint8_t) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)                     \
  X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)                                                                   \
  X(f16, c10::Half) X(bf16, c10::BFloat16) X(f32, float) X(f64, double)                                                \
  X(f8e5m2, c10::Float8_e5m2) X(f8e4m3fn, c10::Float8_e4m3fn) X(f8e5m2fnuz, c10::Float8_e5m2fnuz)                      \
  X(f8e4m3fnuz, c10::Float8_e4m3fnuz) X(f8e8m0fnu, c10::Float8_e8m0fnu)

template <class To, class From> CUTAWAY_INLINE To number(From v) {
  if constexpr (std::is_arithmetic_v<From>) return static_cast<To>(v);
  else return static_cast<To>(static_cast<float>(v));
}
template <> CUTAWAY_INLINE float number<float, c10::BFloat16>(c10::BFloat16 v) {
  const uint32_t bits = static_cast<uint32_t>(v.x) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
template <> CUTAWAY_INLINE double number<double, c10::BFloat16>(c10::BFloat16 v) { return number<float>(v); }

/// `count` elements of type From, `stride` bytes apart, as To. Via is a format in between that rounds (or From itself).
template <class To, class Via, class From>
CUTAWAY_INLINE void read_run(const char* data, int64_t stride, int64_t count, To* out) {
  const auto convert = [](From v) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<Via, From>) return number<To>(v);
    else if constexpr (std::is_arithmetic_v<Via>) return number<To>(number<Via>(v));
    else return number<To>(static_cast<Via>(number<float>(v)));   // as torch converts to the half types: through f32
  };
  if (stride == static_cast<int64_t>(sizeof(From))) {
    const From* p = reinterpret_cast<const From*>(data);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = convert(p[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      From v;
      std::memcpy(&v, data + i * stride, sizeof v);
      out[i] = convert(v);
    }
  }
}

template <class To, class From>
CUTAWAY_INLINE void read_rounded(Format as, const char* data, int64_t stride, int64_t count, To* out) {
  switch (as) {
    case Format::f16: return read_run<To, c10::Half, From>(data, stride, count, out);
    case Format::bf16: return read_run<To, c10::BFloat16, From>(data, stride, count, out);
    case Format::f32: return read_run<To, float, From>(data, stride, count, out);
    default: return read_run<To, From, From>(data, stride, count, out);
  }
}

/// A run of a real operand. To is float or double (any format) or a 64-bit integer (integral formats, as they are).
template <class To>
inline void read_real(const Operand& o, const char* data, int64_t stride, int64_t count, To* out) {
  switch (o.stored) {
#define CUTAWAY_CASE(format, type)                                                           \
  case Format::format:                                                                       \
    if constexpr (std::is_integral_v<To>) return read_run<To, type, type>(data, stride, count, out); \
    else return read_rounded<To, type>(o.as == o.stored ? Format::f64 : o.as, data, stride, count, out);
    CUTAWAY_REAL_FORMATS(CUTAWAY_CASE)
#undef CUTAWAY_CASE
    default: return;
  }
}

/// A run of a complex operand, as pairs (real, imaginary).
template <class To>
inline void read_complex(const Operand& o, const char* data, int64_t stride, int64_t count, To* out) {
  const auto run = [&]<class From>(From) {
    for (int64_t i = 0; i < count; ++i) {
      From pair[2];
      std::memcpy(pair, data + i * stride, sizeof pair);
      out[2 * i] = number<To>(pair[0]);
      out[2 * i + 1] = number<To>(pair[1]);
    }
  };
  if (o.stored == Format::c32) run(c10::Half());
  else if (o.stored == Format::c64) run(float());
  else run(double());
}

}  // namespace cutaway::compare
