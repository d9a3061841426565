// The one pass over memory behind `same`: reads two or three strided arrays together and sums up everything that a verdict
// needs. Knows bytes, strides and element formats; knows no ATen, no threads and no rule of what passes.
//
// Memory is walked in tiles of 1,024 elements. An operand whose format and stride already fit is read in place; any other is
// converted into a small buffer in the first-level cache, so that each byte of memory is read once and nothing is allocated.
// The loops over a tile are written one element at a time and vectorised by the compiler, for several instruction sets.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace cutaway::compare {

/// The formats of elements in memory, by what their bits mean.
enum class Format : uint8_t {
  boolean, u8, i8, i16, i32, i64, u16, u32, u64,
  f16, bf16, f32, f64, f8e5m2, f8e4m3fn, f8e5m2fnuz, f8e4m3fnuz, f8e8m0fnu,
  c32, c64, c128,
};
int64_t size_of(Format);
inline bool is_integral(Format f) { return f <= Format::u64; }
inline bool is_complex(Format f) { return f >= Format::c32; }

/// One array. `as` is the format that its elements are rounded to before they are compared (`can_read_as` says which).
struct Operand {
  const char* data = nullptr;
  Format stored = Format::f32;
  Format as = Format::f32;
  bool conjugated = false, negated = false;   ///< lazy bits of a view
  std::vector<int64_t> strides;               ///< in bytes, one a dimension of Layout::sizes
};
/// The same format, or a real number read as one of the four IEEE-like formats.
bool can_read_as(Format stored, Format as);

/// What counts as close: |a - b| <= atol + |rtol * b|, computed with the roundings of torch's isclose on the CPU.
struct Closeness {
  double tol = 0;
  bool equal_nan = false;
  bool integers_in_double = false;   ///< isclose subtracts integers in the default dtype: f64, or f32
  /// NaN and infinities are compared by place and sign and then taken out, so that every sum is over finite numbers. Off: as torch sums.
  bool finite_rest = false;
};

/// Sizes in the order of iteration, outermost first; adjacent dimensions that are one in memory for all operands are merged.
struct Layout {
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  std::vector<int64_t> unmerged_sizes;   ///< before merging
  std::vector<int> dimension;            ///< which dimension of the tensor unmerged_sizes[i] is
  int rank = 0;                          ///< dimensions of the tensor
  /// Index in the tensor of the element that is `linear`-th in the order of iteration.
  std::vector<int64_t> index_of(int64_t linear) const;
};
/// Chooses the order (largest stride of the first operand outermost), merges dimensions, and rewrites the operands' strides to match.
Layout plan_layout(const std::vector<int64_t>& sizes, std::vector<Operand*> operands);

/// Sums over a range of elements. `a` is the reference, `b` the result, `f` the reference in fp64.
struct Totals {
  int64_t elements = 0;
  int64_t unequal = 0;        ///< not ==, and not NaN on both sides
  int64_t not_close = 0;
  int64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0, nan_f = 0;
  double max_abs = 0;         ///< over elements where the difference is a number
  double max_rel = 0;         ///< the same, relative to |a|, where a is not 0
  int64_t worst = -1;         ///< linear: the first where exactly one side is NaN (finite_rest: NaN or infinite), else the first with max_abs > 0
  bool worst_is_special = false;
  bool beyond_last_bit = false;   ///< some unequal pair is not of neighbouring numbers
  double ab = 0, aa = 0, bb = 0;  ///< sums of products (for the cosine; for booleans, counts)
  double error_a = 0, error_b = 0;  ///< sums of squared differences to f
  double ff = 0;              ///< finite_rest: sum of the squares of f
  /// finite_rest: how many components (a complex number has two) were taken out, and of those in which a and b differ how many say what:
  /// b is as f (closer), a is not as f and neither is b (astray), anything else (wrong).
  struct Specials { int64_t taken_out = 0, closer = 0, astray = 0, wrong = 0; } specials;
  void add(const Totals& later);
};

/// Elements [begin, end) in the order of iteration. `f` may have no data. Both `a.as` and `b.as` must be the same format.
Totals pass_over(const Layout&, const Operand& a, const Operand& b, const Operand& f, const Closeness&, int64_t begin, int64_t end);

/// Value of one element as a number (real part of a complex one), for messages.
double value_at(const Layout&, const Operand&, int64_t linear);

}  // namespace cutaway::compare
