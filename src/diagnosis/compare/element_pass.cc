#include "diagnosis/compare/element_pass.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "diagnosis/compare/element_formats.h"

namespace cutaway::compare {

int64_t size_of(Format f) {
  static constexpr int8_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 1, 1, 1, 1, 1, 4, 8, 16};
  return sizes[static_cast<int>(f)];
}

bool can_read_as(Format stored, Format as) {
  if (stored == as) return true;
  return !is_complex(stored) && (as == Format::f16 || as == Format::bf16 || as == Format::f32 || as == Format::f64);
}

namespace {

constexpr int64_t kTile = 1024;

// --- Rounding to the format that torch would have stored each step in -------------------------------------------------

struct Exact {
  template <class T> CUTAWAY_INLINE static T round(T v) { return v; }
  static int64_t bits(float v) { int32_t b; std::memcpy(&b, &v, 4); return b < 0 ? int64_t{INT32_MIN} - b : b; }
  static int64_t bits(double v) { int64_t b; std::memcpy(&b, &v, 8); return b < 0 ? INT64_MIN - b : b; }
};
struct ToBFloat16 {
  CUTAWAY_INLINE static float round(float v) {   // to nearest, ties to even; NaN stays NaN
    uint32_t b;
    std::memcpy(&b, &v, 4);
    const uint32_t r = (b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u;
    float f;
    std::memcpy(&f, &r, 4);
    return v != v ? v : f;
  }
  static int64_t bits(float v) { return Exact::bits(v) >> 16; }
};
struct ToHalf {
  CUTAWAY_INLINE static float round(float v) {
    uint32_t b;
    std::memcpy(&b, &v, 4);
    const uint32_t r = (b + 0xfff + ((b >> 13) & 1)) & 0xffffe000u;
    float normal;
    std::memcpy(&normal, &r, 4);
    const float size = std::fabs(v);
    // Below 2^-14 halves are 2^-24 apart, which is the spacing of floats just above one half.
    const float small = std::copysign((size + 0.5f) - 0.5f, v);
    const float large = std::copysign(INFINITY, v);
    const float rounded = size < 0x1p-14f ? small : size >= 65520.0f ? large : normal;
    return v != v ? v : rounded;
  }
  static int64_t bits(float v) { const int16_t b = static_cast<int16_t>(c10::Half(v).x); return b < 0 ? INT16_MIN - b : b; }
};

// --- What an element is: how to subtract two, and what torch's isclose allows ------------------------------------------
// With a tolerance of zero isclose looks at equality alone (integers that become one float are not equal): nothing is allowed, by atol = -1.

template <class T, class Rounding> struct Real {
  using Part = T;              // the type of a tile
  using Size = T;              // the type of |a - b|
  using Round = Rounding;
  static constexpr int kParts = 1;
  static constexpr bool kVector = true;
  static constexpr bool kHasSpecials = true;
  T rtol, atol;
  explicit Real(const Closeness& c) : rtol(static_cast<T>(c.tol)), atol(c.tol == 0 ? T(-1) : Rounding::round(static_cast<T>(c.tol))) {}
  CUTAWAY_INLINE static T difference(const T* x, const T* y) { return std::fabs(Rounding::round(*x - *y)); }
  CUTAWAY_INLINE T allowed(const T* y) const { return Rounding::round(std::fabs(Rounding::round(*y * rtol)) + atol); }
  CUTAWAY_INLINE static bool is_equal(const T* x, const T* y) { return *x == *y; }
  CUTAWAY_INLINE static bool is_nan(const T* x) { return *x != *x; }
  CUTAWAY_INLINE static bool is_inf(const T* x) { return std::fabs(*x) == std::numeric_limits<T>::infinity(); }
  CUTAWAY_INLINE static double size(const T* x) { return std::fabs(static_cast<double>(*x)); }
  CUTAWAY_INLINE static double shown_difference(const T* x, const T* y) { return difference(x, y); }
  static bool is_neighbour(const T* x, const T* y) { return std::abs(Rounding::bits(*x) - Rounding::bits(*y)) <= 1; }
};

template <class T, class Default> struct Integer {
  using Part = T;
  using Size = Default;
  using Round = Exact;
  static constexpr int kParts = 1;
  static constexpr bool kVector = false;
  static constexpr bool kHasSpecials = false;
  Default rtol, atol;
  explicit Integer(const Closeness& c) : rtol(static_cast<Default>(c.tol)), atol(c.tol == 0 ? Default(-1) : rtol) {}
  CUTAWAY_INLINE static Default difference(const T* x, const T* y) { return std::fabs(static_cast<Default>(*x) - static_cast<Default>(*y)); }
  CUTAWAY_INLINE Default allowed(const T* y) const { return std::fabs(static_cast<Default>(*y) * rtol) + atol; }
  CUTAWAY_INLINE static bool is_equal(const T* x, const T* y) { return *x == *y; }
  CUTAWAY_INLINE static bool is_nan(const T*) { return false; }
  CUTAWAY_INLINE static bool is_inf(const T*) { return false; }
  CUTAWAY_INLINE static double size(const T* x) { return std::fabs(static_cast<double>(*x)); }
  CUTAWAY_INLINE static double shown_difference(const T* x, const T* y) {   // exact also where f32 would round it away
    return static_cast<double>(*x > *y ? static_cast<uint64_t>(*x) - static_cast<uint64_t>(*y) : static_cast<uint64_t>(*y) - static_cast<uint64_t>(*x));
  }
  static bool is_neighbour(const T*, const T*) { return false; }   // an integer has no last bit that may be lost
};

template <class T, class Rounding> struct Complex {
  using Part = T;
  using Size = T;
  using Round = Rounding;
  static constexpr int kParts = 2;
  static constexpr bool kVector = false;
  static constexpr bool kHasSpecials = true;
  T rtol, atol;
  explicit Complex(const Closeness& c) : rtol(Rounding::round(static_cast<T>(c.tol))), atol(c.tol == 0 ? T(-1) : rtol) {}
  CUTAWAY_INLINE static T magnitude(T re, T im) {
    if constexpr (std::is_same_v<T, double>) return std::hypot(re, im);
    // Squares of floats neither overflow nor round in double, so this is what hypotf gives, without its cost.
    else return Rounding::round(static_cast<float>(std::sqrt(static_cast<double>(re) * re + static_cast<double>(im) * im)));
  }
  CUTAWAY_INLINE static T difference(const T* x, const T* y) { return magnitude(Rounding::round(x[0] - y[0]), Rounding::round(x[1] - y[1])); }
  CUTAWAY_INLINE T allowed(const T* y) const {
    return Rounding::round(magnitude(Rounding::round(y[0] * rtol), Rounding::round(y[1] * rtol)) + atol);
  }
  CUTAWAY_INLINE static bool is_equal(const T* x, const T* y) { return x[0] == y[0] && x[1] == y[1]; }
  CUTAWAY_INLINE static bool is_nan(const T* x) { return x[0] != x[0] || x[1] != x[1]; }
  CUTAWAY_INLINE static bool is_inf(const T* x) { return std::isinf(x[0]) || std::isinf(x[1]); }
  CUTAWAY_INLINE static double size(const T* x) { return std::hypot(static_cast<double>(x[0]), static_cast<double>(x[1])); }
  CUTAWAY_INLINE static double shown_difference(const T* x, const T* y) { return difference(x, y); }
  static bool is_neighbour(const T* x, const T* y) {
    return std::abs(Rounding::bits(x[0]) - Rounding::bits(y[0])) <= 1 && std::abs(Rounding::bits(x[1]) - Rounding::bits(y[1])) <= 1;
  }
};

// --- One tile ----------------------------------------------------------------------------------------------------------

struct TileSums {
  int64_t unequal = 0, not_close = 0, special = 0;   // special: the difference is not a finite number
  double max_abs = 0, max_rel = 0, ab = 0, aa = 0, bb = 0;
};

/// The vectorised loop. Counts are right only if nothing is special; else `count_specials` counts again.
template <class Kind, class T = typename Kind::Part>
CUTAWAY_INLINE TileSums compare_tile(const Kind& kind, const T* a, const T* b, int64_t n) {
  using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  Count unequal = 0, not_close = 0, special = 0;
  T max_abs = 0, max_rel = 0, ab = 0, aa = 0, bb = 0;
#pragma omp simd reduction(+ : unequal, not_close, special, ab, aa, bb) reduction(max : max_abs, max_rel)
  for (int64_t i = 0; i < n; ++i) {
    const T x = a[i], y = b[i];
    const T d = Kind::difference(&x, &y);
    const T allowed = kind.allowed(&y);
    const T rel = x == 0 ? T(0) : d / std::fabs(x);
    const Count equal = x == y, finite = d < infinity, within = d <= allowed;
    unequal += 1 - equal;
    not_close += 1 - (equal | (finite & within));
    special += 1 - finite;
    max_abs = d > max_abs ? d : max_abs;
    max_rel = rel > max_rel ? rel : max_rel;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return {unequal, not_close, special, static_cast<double>(max_abs), static_cast<double>(max_rel),
          static_cast<double>(ab), static_cast<double>(aa), static_cast<double>(bb)};
}

/// The same for kinds without vectors, and for tiles with NaN or infinities, element by element.
template <class Kind, class T = typename Kind::Part>
CUTAWAY_INLINE void compare_slowly(const Kind& kind, const T* a, const T* b, int64_t n, bool equal_nan, int64_t first, TileSums& s, Totals& t) {
  constexpr auto infinity = std::numeric_limits<typename Kind::Size>::infinity();
  for (int64_t i = 0; i < n; ++i, a += Kind::kParts, b += Kind::kParts) {
    const bool nan_a = Kind::is_nan(a), nan_b = Kind::is_nan(b);
    t.nan_a += nan_a;
    t.nan_b += nan_b;
    t.inf_a += Kind::is_inf(a);
    t.inf_b += Kind::is_inf(b);
    if (Kind::is_equal(a, b)) continue;
    const bool both_nan = nan_a && nan_b;
    s.unequal += !both_nan;
    const auto d = Kind::difference(a, b);
    const bool close = (d < infinity && d <= kind.allowed(b)) || (both_nan && equal_nan);
    s.not_close += !close;
    if (!close && (nan_a || nan_b) && !t.worst_is_special) {
      t.worst_is_special = true;
      t.worst = first + i;
    }
    const double shown = Kind::shown_difference(a, b), size = Kind::size(a);
    if (shown > s.max_abs) s.max_abs = shown;
    if (size != 0 && shown / size > s.max_rel) s.max_rel = shown / size;
  }
}

template <class Kind, class T = typename Kind::Part>
CUTAWAY_INLINE void sum_products(const T* a, const T* b, int64_t n, TileSums& s) {
  double ab = 0, aa = 0, bb = 0;
#pragma omp simd reduction(+ : ab, aa, bb)
  for (int64_t i = 0; i < n * Kind::kParts; ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  s.ab = ab;
  s.aa = aa;
  s.bb = bb;
}

/// Squares of a tile whose two sides are the same bytes. False if it has NaN or infinities.
template <class T> CUTAWAY_INLINE bool sum_squares(const T* a, int64_t n, double& sum) {
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += a[i] * a[i];
  sum = static_cast<double>(squares);
  return std::isfinite(squares) && (squares == 0 || squares > T(1e-30));   // else NaN, infinite, or out of the range of squares
}

template <class T> CUTAWAY_INLINE void sum_errors(const T* a, const T* b, const double* f, int64_t n, double& error_a, double& error_b) {
  double ea = 0, eb = 0;
#pragma omp simd reduction(+ : ea, eb)
  for (int64_t i = 0; i < n; ++i) {
    const double da = f[i] - static_cast<double>(a[i]), db = f[i] - static_cast<double>(b[i]);
    ea += da * da;
    eb += db * db;
  }
  error_a = ea;
  error_b = eb;
}
template <class T> CUTAWAY_INLINE double sum_error(const T* a, const double* f, int64_t n) {
  double ea = 0;
#pragma omp simd reduction(+ : ea)
  for (int64_t i = 0; i < n; ++i) {
    const double da = f[i] - static_cast<double>(a[i]);
    ea += da * da;
  }
  return ea;
}

// --- NaN and infinities ----------------------------------------------------------------------------------------------------

constexpr double kNearFp64 = 4e-2;   // how near to fp64 a number must be where the reference is none; torch has the same

/// Takes every component that is not finite on one of the sides out of a tile, leaving zeros, and counts what it says. The three arrays are the
/// caller's own. `f` may be null; where it alone is not finite it has nothing to say, and the reference stands for it.
template <class T, class Rounding>
CUTAWAY_INLINE void take_out_specials(T* a, T* b, double* f, int64_t components, int parts, int64_t first, Totals& t) {
  for (int64_t i = 0; i < components; ++i) {
    const T x = a[i], y = b[i];
    const T z = f ? Rounding::round(static_cast<T>(f[i])) : x;   // beyond the largest number of the dtype fp64 is infinite too
    if (std::isfinite(x) && std::isfinite(y)) {
      if (f && !std::isfinite(z)) {
        t.nan_f += z != z;
        f[i] = static_cast<double>(x);
      }
      continue;
    }
    t.nan_a += x != x;
    t.nan_b += y != y;
    t.inf_a += std::isinf(x);
    t.inf_b += std::isinf(y);
    t.nan_f += f && z != z;
    ++t.specials.taken_out;
    const auto is_as = [](T u, T v) { return u == v || (u != u && v != v); };
    if (!is_as(x, y)) {
      const bool agrees = std::isfinite(y) && std::isfinite(z) ? std::fabs(y - z) <= kNearFp64 + kNearFp64 * std::fabs(z) : is_as(y, z);
      const bool reference_agrees = std::isfinite(x) ? std::isfinite(z) : is_as(x, z);
      ++(!f ? t.specials.wrong : agrees ? t.specials.closer : reference_agrees ? t.specials.wrong : t.specials.astray);
      ++t.unequal;
      t.beyond_last_bit = true;
      if (!t.worst_is_special) {
        t.worst_is_special = true;
        t.worst = first + i / parts;
      }
    }
    a[i] = b[i] = 0;
    if (f) f[i] = 0;
  }
}

// --- Walking ---------------------------------------------------------------------------------------------------------------

/// A part of a tile that lies within one innermost row: where it begins in each operand, and how long it is.
struct Run { int64_t offset[3]; int64_t count; };

class Walker {
 public:
  Walker(const Layout& layout, const Operand* const* operands, int64_t begin) : sizes_(layout.sizes), operands_(operands), place_(layout.sizes.size()) {
    for (size_t d = sizes_.size(); d-- > 0; begin /= sizes_[d]) {
      place_[d] = begin % sizes_[d];
      for (int k = 0; k < 3; ++k)
        if (operands_[k]->data) offset_[k] += place_[d] * operands_[k]->strides[d];
    }
  }
  /// The runs of the next `n` elements.
  int next(int64_t n, Run* runs) {
    int used = 0;
    const size_t inner = sizes_.size() - 1;
    while (n > 0) {
      Run& run = runs[used++];
      run.count = std::min(n, sizes_[inner] - place_[inner]);
      for (int k = 0; k < 3; ++k) run.offset[k] = offset_[k];
      n -= run.count;
      move(inner, run.count);
      for (size_t d = inner; place_[d] == sizes_[d] && d > 0; --d) {
        move(d, -sizes_[d]);
        move(d - 1, 1);
      }
    }
    return used;
  }

 private:
  void move(size_t d, int64_t by) {
    place_[d] += by;
    for (int k = 0; k < 3; ++k)
      if (operands_[k]->data) offset_[k] += by * operands_[k]->strides[d];
  }
  const std::vector<int64_t>& sizes_;
  const Operand* const* operands_;
  std::vector<int64_t> place_;
  int64_t offset_[3] = {0, 0, 0};
};

template <class T> constexpr Format format_for() {
  if constexpr (std::is_same_v<T, float>) return Format::f32;
  else if constexpr (std::is_same_v<T, double>) return Format::f64;
  else if constexpr (std::is_same_v<T, int64_t>) return Format::i64;
  else return Format::u64;
}

/// The tile of operand `k`: in place when memory has it ready, else read into `buffer`.
template <class T, int parts>
CUTAWAY_INLINE const T* tile_of(const Operand& o, int k, const Run* runs, int used, T* buffer) {
  const int64_t stride = o.strides.back();
  const Format whole = parts == 1 ? format_for<T>() : std::is_same_v<T, float> ? Format::c64 : Format::c128;
  if (used == 1 && o.stored == whole && o.as == whole && stride == int64_t{sizeof(T)} * parts && !o.conjugated && !o.negated)
    return reinterpret_cast<const T*>(o.data + runs[0].offset[k]);
  T* out = buffer;
  for (int r = 0; r < used; ++r) {
    if constexpr (parts == 1) read_real<T>(o, o.data + runs[r].offset[k], stride, runs[r].count, out);
    else read_complex<T>(o, o.data + runs[r].offset[k], stride, runs[r].count, out);
    out += runs[r].count * parts;
  }
  const int64_t n = out - buffer;
  if (o.negated)
    for (int64_t i = 0; i < n; ++i) buffer[i] = -buffer[i];
  if (parts == 2 && o.conjugated)
    for (int64_t i = 1; i < n; i += 2) buffer[i] = -buffer[i];
  return buffer;
}

template <class Kind>
CUTAWAY_INLINE Totals pass_with(const Layout& layout, const Operand& a, const Operand& b, const Operand& f, const Closeness& closeness, int64_t begin, int64_t end) {
  using T = typename Kind::Part;
  constexpr int parts = Kind::kParts;
  alignas(64) T buffer_a[kTile * parts], buffer_b[kTile * parts];
  alignas(64) double buffer_f[kTile * parts];
  Run runs[kTile];
  const Kind kind(closeness);
  const Operand* operands[3] = {&a, &b, &f};
  Walker walker(layout, operands, begin);
  Totals t;
  t.elements = end - begin;
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    const int used = walker.next(n, runs);
    const T* ta = tile_of<T, parts>(a, 0, runs, used, buffer_a);
    const T* tb = tile_of<T, parts>(b, 1, runs, used, buffer_b);
    bool f_is_complex = is_complex(f.stored);
    const double* tf = nullptr;
    if (f.data) {
      if constexpr (parts == 1) tf = tile_of<double, 1>(f, 2, runs, used, buffer_f);
      else tf = f_is_complex ? tile_of<double, 2>(f, 2, runs, used, buffer_f) : tile_of<double, 1>(f, 2, runs, used, buffer_f);
    }
    bool is_finite = !closeness.finite_rest || !Kind::kHasSpecials;   // or nothing is to be taken out
    const auto take_out = [&] {
      if constexpr (Kind::kHasSpecials) {
        if (ta != buffer_a) ta = static_cast<const T*>(std::memcpy(buffer_a, ta, n * parts * sizeof(T)));
        if (tb != buffer_b) tb = static_cast<const T*>(std::memcpy(buffer_b, tb, n * parts * sizeof(T)));
        if (tf && parts == 2 && !f_is_complex) {   // a real reference of a complex value: its imaginary parts are zero
          if (tf != buffer_f) std::memcpy(buffer_f, tf, n * sizeof(double));
          for (int64_t i = n; i-- > 0;) { buffer_f[2 * i] = buffer_f[i]; buffer_f[2 * i + 1] = 0; }
          f_is_complex = true;
        } else if (tf && tf != buffer_f) {
          std::memcpy(buffer_f, tf, n * parts * sizeof(double));
        }
        if (tf) tf = buffer_f;
        take_out_specials<T, typename Kind::Round>(buffer_a, buffer_b, tf ? buffer_f : nullptr, n * parts, parts, first, t);
      }
      is_finite = true;
    };
    if (!is_finite && !Kind::kVector) take_out();

    TileSums s;
    const bool same_bytes = parts == 1 && std::memcmp(ta, tb, n * sizeof(T)) == 0;
    bool shortcut = false;
    if (same_bytes) {
      if constexpr (Kind::kVector) {
        shortcut = sum_squares(ta, n, s.aa);
        s.ab = s.bb = s.aa;
      } else {
        sum_products<Kind>(ta, tb, n, s);
        shortcut = true;
      }
    }
    if (!shortcut) {
      if constexpr (Kind::kVector) {
        s = compare_tile(kind, ta, tb, n);
        if (s.special && !is_finite) {
          take_out();
          s = compare_tile(kind, ta, tb, n);
        }
      }
      if (!Kind::kVector || s.special) {
        s.unequal = s.not_close = 0;
        compare_slowly(kind, ta, tb, n, closeness.equal_nan, first, s, t);
      }
      // Squares of very large or very small numbers leave the range of f32.
      if (!Kind::kVector || !(s.aa > 1e-30 && s.aa < 1e37 && s.bb > 1e-30 && s.bb < 1e37)) sum_products<Kind>(ta, tb, n, s);
      if (s.unequal && !t.beyond_last_bit)
        for (int64_t i = 0; i < n * parts && !t.beyond_last_bit; i += parts)
          t.beyond_last_bit = !Kind::is_equal(ta + i, tb + i) && !Kind::is_neighbour(ta + i, tb + i);
      if (s.max_abs > t.max_abs) {
        t.max_abs = s.max_abs;
        if (!t.worst_is_special) {
          int64_t i = 0;
          while (i + 1 < n && !(Kind::shown_difference(ta + i * parts, tb + i * parts) == s.max_abs)) ++i;
          t.worst = first + i;
        }
      }
      t.max_rel = std::max(t.max_rel, s.max_rel);
    }
    t.unequal += s.unequal;
    t.not_close += s.not_close;
    t.ab += s.ab;
    t.aa += s.aa;
    t.bb += s.bb;

    if (tf) {
      double ea = 0, eb = 0;
      int64_t doubles = n;
      const auto sum_up = [&] {
        doubles = n * parts;
        if (parts == 2 && !f_is_complex) {
          doubles = n;
          ea = eb = 0;
          for (int64_t i = 0; i < n; ++i) {
            const double ra = tf[i] - static_cast<double>(ta[2 * i]), rb = tf[i] - static_cast<double>(tb[2 * i]);
            const double ia = static_cast<double>(ta[2 * i + 1]), ib = static_cast<double>(tb[2 * i + 1]);
            ea += ra * ra + ia * ia;
            eb += rb * rb + ib * ib;
          }
        } else if (same_bytes) {
          ea = eb = sum_error(ta, tf, doubles);
        } else {
          sum_errors(ta, tb, tf, doubles, ea, eb);
        }
      };
      sum_up();
      // A number of fp64's that the dtype cannot hold makes an error of its own size, which would hide all others.
      constexpr double kSuspicious = 1e6;
      if (!is_finite && !(ea < kSuspicious && eb < kSuspicious)) {
        take_out();
        sum_up();
      }
      t.error_a += ea;
      t.error_b += eb;
      if (closeness.finite_rest) {
        double ff = 0;
#pragma omp simd reduction(+ : ff)
        for (int64_t i = 0; i < doubles; ++i) ff += tf[i] * tf[i];
        t.ff += ff;
      }
      if (!closeness.finite_rest && (ea != ea || eb != eb))
        for (int64_t i = 0; i < doubles; ++i) t.nan_f += tf[i] != tf[i];
    }
  }
  return t;
}

CUTAWAY_INLINE Totals pass_by_format(const Layout& layout, const Operand& a, const Operand& b, const Operand& f, const Closeness& c, int64_t begin, int64_t end) {
  switch (a.as) {
    case Format::f64: return pass_with<Real<double, Exact>>(layout, a, b, f, c, begin, end);
    case Format::f16: return pass_with<Real<float, ToHalf>>(layout, a, b, f, c, begin, end);
    case Format::bf16: return pass_with<Real<float, ToBFloat16>>(layout, a, b, f, c, begin, end);
    case Format::c32: return pass_with<Complex<float, ToHalf>>(layout, a, b, f, c, begin, end);
    case Format::c64: return pass_with<Complex<float, Exact>>(layout, a, b, f, c, begin, end);
    case Format::c128: return pass_with<Complex<double, Exact>>(layout, a, b, f, c, begin, end);
    case Format::u64:
      return c.integers_in_double ? pass_with<Integer<uint64_t, double>>(layout, a, b, f, c, begin, end)
                                  : pass_with<Integer<uint64_t, float>>(layout, a, b, f, c, begin, end);
    case Format::boolean: case Format::u8: case Format::i8: case Format::i16: case Format::i32: case Format::i64: case Format::u16: case Format::u32:
      return c.integers_in_double ? pass_with<Integer<int64_t, double>>(layout, a, b, f, c, begin, end)
                                  : pass_with<Integer<int64_t, float>>(layout, a, b, f, c, begin, end);
    default: return pass_with<Real<float, Exact>>(layout, a, b, f, c, begin, end);   // f32, and the 8-bit formats, which f32 holds exactly
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,bmi2,f16c")]] Totals pass_avx2(const Layout& l, const Operand& a, const Operand& b, const Operand& f, const Closeness& c, int64_t begin, int64_t end) {
  return pass_by_format(l, a, b, f, c, begin, end);
}
#endif
Totals pass_plain(const Layout& l, const Operand& a, const Operand& b, const Operand& f, const Closeness& c, int64_t begin, int64_t end) {
  return pass_by_format(l, a, b, f, c, begin, end);
}

}  // namespace

Totals pass_over(const Layout& layout, const Operand& a, const Operand& b, const Operand& f, const Closeness& closeness, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return pass_avx2(layout, a, b, f, closeness, begin, end);
#endif
  return pass_plain(layout, a, b, f, closeness, begin, end);
}

double value_at(const Layout& layout, const Operand& o, int64_t linear) {
  Operand none;
  const Operand* operands[3] = {&o, &none, &none};
  Walker walker(layout, operands, linear);
  Run run[1];
  walker.next(1, run);
  double value[2] = {0, 0};
  if (is_complex(o.stored)) read_complex<double>(o, o.data + run[0].offset[0], 1, 1, value);
  else read_real<double>(o, o.data + run[0].offset[0], 1, 1, value);
  return o.negated ? -value[0] : value[0];
}

void Totals::add(const Totals& later) {
  if (later.worst >= 0 && ((later.worst_is_special && !worst_is_special) || (later.worst_is_special == worst_is_special && !worst_is_special && later.max_abs > max_abs) || worst < 0)) {
    worst = later.worst;
    worst_is_special = later.worst_is_special;
  }
  elements += later.elements;
  unequal += later.unequal;
  not_close += later.not_close;
  nan_a += later.nan_a;
  nan_b += later.nan_b;
  inf_a += later.inf_a;
  inf_b += later.inf_b;
  nan_f += later.nan_f;
  max_abs = std::max(max_abs, later.max_abs);
  max_rel = std::max(max_rel, later.max_rel);
  beyond_last_bit |= later.beyond_last_bit;
  ab += later.ab;
  aa += later.aa;
  bb += later.bb;
  error_a += later.error_a;
  error_b += later.error_b;
  ff += later.ff;
  specials.taken_out += later.specials.taken_out;
  specials.closer += later.specials.closer;
  specials.astray += later.specials.astray;
  specials.wrong += later.specials.wrong;
}

}  // namespace cutaway::compare
