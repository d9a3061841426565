#include "compiler/codegen/prelude.h"

namespace cutaway::codegen {
namespace {

// Polynomials are minimax fits of this project's own; their errors stand beside them. Everything is plain arithmetic on vectors.
constexpr const char* kText = R"(
#define INLINE static inline __attribute__((always_inline))
typedef float F __attribute__((vector_size(4 * W)));
typedef double D __attribute__((vector_size(8 * W)));
typedef int I __attribute__((vector_size(4 * W)));            // also a mask: 0 or -1 a lane
typedef unsigned U __attribute__((vector_size(4 * W)));
typedef long L __attribute__((vector_size(8 * W)));
typedef unsigned long UL __attribute__((vector_size(8 * W)));
typedef unsigned char B8 __attribute__((vector_size(W)));
typedef signed char S8 __attribute__((vector_size(W)));
typedef short S16 __attribute__((vector_size(2 * W)));
typedef unsigned short H __attribute__((vector_size(2 * W)));  // half and bfloat16, as bits
struct Full {};                                                // W elements, or the last few of a row
struct Part { int n; };

INLINE F splat_f(float x) { return x - F{}; }
INLINE D splat_d(double x) { return x - D{}; }
INLINE I splat_i(int x) { return x - I{}; }
INLINE L splat_l(long x) { return x - L{}; }

template <class V, class T> INLINE V read(const T* p, Full) { V v; __builtin_memcpy(&v, p, sizeof v); return v; }
template <class V, class T> INLINE V read(const T* p, Part t) { V v = {}; for (int l = 0; l < t.n; ++l) v[l] = p[l]; return v; }
template <class V, class T> INLINE V read_far(const T* p, long stride, Full) { V v; for (int l = 0; l < W; ++l) v[l] = p[l * stride]; return v; }
template <class V, class T> INLINE V read_far(const T* p, long stride, Part t) { V v = {}; for (int l = 0; l < t.n; ++l) v[l] = p[l * stride]; return v; }
template <class V> INLINE long lanes(V, Full) { return W; }
template <class V> INLINE long lanes(V, Part t) { return t.n; }
/// Which of the places from, from + 1, … is this one.
INLINE I is_at(long from, long wanted) {
  I place;
  for (int l = 0; l < W; ++l) place[l] = l;
  const unsigned long away = (unsigned long)(wanted - from);
  return place == splat_i(away < W ? (int)away : -1);
}
INLINE L steps(long from, long stride) { L v; for (int l = 0; l < W; ++l) v[l] = from + l * stride; return v; }
/// Where the mask holds; elsewhere memory is not touched. The mask is of all lanes, or one for all of them.
template <class V, class T, class N> INLINE V read_if(const T* p, long stride, int m, N n) { if (!m) return V{}; return stride == 1 ? read<V>(p, n) : read_far<V>(p, stride, n); }
template <class V, class T, class N> INLINE V read_if(const T* p, long stride, I m, N n) {
  int some = 0, all = -1;
  for (int l = 0; l < lanes(m, n); ++l) some |= m[l], all &= m[l];
  if (!some) return V{};
  if (all) return stride == 1 ? read<V>(p, n) : read_far<V>(p, stride, n);
  V v = {};
  for (int l = 0; l < lanes(m, n); ++l) if (m[l]) v[l] = p[l * stride];
  return v;
}
template <class V, class T, class N> INLINE V read_at(const T* p, long stride, L at, N n) { V v = {}; for (int l = 0; l < lanes(v, n); ++l) v[l] = p[l * stride + at[l]]; return v; }
/// An index that is out of range becomes 0 and is told of. Lanes beyond the row's end do not count.
template <class N> INLINE L index(L i, long size, bool& bad, N n) {
  for (int l = 0; l < W; ++l) {
    const bool is_out = (unsigned long)i[l] >= (unsigned long)size;
    bad |= is_out && l < lanes(i, n);
    i[l] = is_out ? 0 : i[l];
  }
  return i;
}
template <class N> INLINE L index_wrapped(L i, long size, bool& bad, N n) { return index((L)(i < 0 ? i + size : i), size, bad, n); }
template <class V, class T> INLINE void write(T* p, V v, Full) { __builtin_memcpy(p, &v, sizeof v); }
template <class V, class T> INLINE void write(T* p, V v, Part t) { for (int l = 0; l < t.n; ++l) p[l] = v[l]; }
/// Past the caches, for results that are larger than these: memory is not read before it is written. `flush` comes before others may read it.
#if defined(__x86_64__)
#if defined(__AVX512F__)
typedef long long Chunk __attribute__((vector_size(64)));
#define STREAM(p, c) __builtin_ia32_movntdq512(p, c)
#elif defined(__AVX__)
typedef long long Chunk __attribute__((vector_size(32)));
#define STREAM(p, c) __builtin_ia32_movntdq256(p, c)
#else
typedef long long Chunk __attribute__((vector_size(16)));
#define STREAM(p, c) __builtin_ia32_movntdq(p, c)
#endif
#if defined(__clang__)
#undef STREAM
#define STREAM(p, c) __builtin_nontemporal_store(c, p)
#endif
template <class V, class T> INLINE void write_past(T* p, V v, Full) {
  if (sizeof v < sizeof(Chunk) || (unsigned long)p % sizeof(Chunk)) return write(p, v, Full{});
  for (unsigned long i = 0; i < sizeof v / sizeof(Chunk); ++i) {
    Chunk c;
    __builtin_memcpy(&c, (const char*)&v + i * sizeof c, sizeof c);
    STREAM((Chunk*)p + i, c);
  }
}
INLINE void flush() { __builtin_ia32_sfence(); }
#else
template <class V, class T> INLINE void write_past(T* p, V v, Full) { write(p, v, Full{}); }
INLINE void flush() {}
#endif
template <class V, class T> INLINE void write_past(T* p, V v, Part t) { write(p, v, t); }
template <class V, class T> INLINE void write_far(T* p, long stride, V v, Full) { for (int l = 0; l < W; ++l) p[l * stride] = v[l]; }
template <class V, class T> INLINE void write_far(T* p, long stride, V v, Part t) { for (int l = 0; l < t.n; ++l) p[l * stride] = v[l]; }
/// One more summand; the first of them is written over what was there, as if it had been 0.
template <class V, class T, class N> INLINE void add_up(T* p, V v, bool is_first, N n) { write(p, is_first ? V{} + v : read<V>(p, n) + v, n); }
/// Lanes beyond the row's end do not count in a reduction.
template <class V> INLINE V within(V v, V, Full) { return v; }
template <class V> INLINE V within(V v, V other, Part t) { for (int l = 0; l < W; ++l) v[l] = l < t.n ? v[l] : other[l]; return v; }

INLINE F bf16_bits(H h) { return (F)(__builtin_convertvector(h, U) << 16); }
INLINE H bits_bf16(F x) {
  const U u = (U)x;
  const U near = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return __builtin_convertvector((U)(x != x ? (I)((u >> 16) | 0x40u) : (I)near), H);
}
INLINE F f16_bits(H h) {
  const U u = __builtin_convertvector(h, U), rest = (u & 0x7fffu) << 13;
  const F scaled = (F)rest * 0x1p112f;                         // small numbers too: the product is exact
  const U big = (U)scaled | 0x7f800000u;                       // infinity and not a number
  return (F)((I)(rest >= 0x0f800000u) ? (I)(big | ((u & 0x8000u) << 16)) : (I)((U)scaled | ((u & 0x8000u) << 16)));
}
INLINE H bits_f16(F x) {
  const U u = (U)x, sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  const F small = (F)a + 0.5f;                                 // the unit of 0.5 is that of half's smallest numbers
  const U tiny = (U)small - 0x3f000000u;
  const U normal = (a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13;
  U r = (U)((I)(a < 0x38800000u) ? (I)tiny : (I)normal);
  r = (U)((I)(a >= 0x477ff000u) ? splat_i(0x7c00) : (I)r);
  r = (U)((I)(a > 0x7f800000u) ? splat_i(0x7e00) : (I)r);
  return __builtin_convertvector(r | sign, H);
}
INLINE F round_bf16(F x) { return bf16_bits(bits_bf16(x)); }
INLINE F round_f16(F x) { return f16_bits(bits_f16(x)); }

INLINE I mask_of(L m) { return __builtin_convertvector(m, I); }
INLINE I mask_of(I m) { return m; }
INLINE F select(I m, F a, F b) { return m ? a : b; }
INLINE I select(I m, I a, I b) { return m ? a : b; }
INLINE D select(I m, D a, D b) { return __builtin_convertvector(m, L) ? a : b; }
INLINE L select(I m, L a, L b) { return __builtin_convertvector(m, L) ? a : b; }
template <class V> INLINE V maximum(V a, V b) { return select(mask_of((a > b) | (a != a)), a, b); }   // what is not a number stays
template <class V> INLINE V minimum(V a, V b) { return select(mask_of((a < b) | (a != a)), a, b); }
template <class V> INLINE V fmaximum(V a, V b) { return select(mask_of((a >= b) | (b != b)), a, b); }
template <class V> INLINE V fminimum(V a, V b) { return select(mask_of((a <= b) | (b != b)), a, b); }

// All lanes into one, by halves: a fixed tree, so that a sum is the same for every number of threads.
#define ALWAYS __attribute__((always_inline))
struct Sum { template <class X> ALWAYS static X of(X a, X b) { return a + b; } };
struct Product { template <class X> ALWAYS static X of(X a, X b) { return a * b; } };
struct Max { template <class X> ALWAYS static X of(X a, X b) { return (b > a) | (b != b) ? b : a; } };   // what is not a number stays
struct Min { template <class X> ALWAYS static X of(X a, X b) { return (b < a) | (b != b) ? b : a; } };
template <int N, class T> struct Lanes { typedef T V __attribute__((vector_size(N * sizeof(T)))); };
template <class O, int N, class T> INLINE T fold_lanes(typename Lanes<N, T>::V v) {
  if constexpr (N == 4) {
    return O::of(O::of(T(v[0]), T(v[2])), O::of(T(v[1]), T(v[3])));
  } else {
    typename Lanes<N / 2, T>::V a, b;
    __builtin_memcpy(&a, &v, sizeof a);
    __builtin_memcpy(&b, (const char*)&v + sizeof a, sizeof b);
    return fold_lanes<O, N / 2, T>(O::of(a, b));
  }
}
template <class O> INLINE float fold(F v) { return fold_lanes<O, W, float>(v); }
template <class O> INLINE double fold(D v) { return fold_lanes<O, W, double>(v); }
template <class O> INLINE int fold(I v) { return fold_lanes<O, W, int>(v); }
template <class O> INLINE long fold(L v) { return fold_lanes<O, W, long>(v); }

#define EACH1(name, f32, f64) \
  INLINE F name(F x) { for (int l = 0; l < W; ++l) x[l] = f32(x[l]); return x; } \
  INLINE D name(D x) { for (int l = 0; l < W; ++l) x[l] = f64(x[l]); return x; }
#define EACH1D(name, f64) INLINE D name(D x) { for (int l = 0; l < W; ++l) x[l] = f64(x[l]); return x; }
#define EACH2(name, f32, f64) \
  INLINE F name(F x, F y) { for (int l = 0; l < W; ++l) x[l] = f32(x[l], y[l]); return x; } \
  INLINE D name(D x, D y) { for (int l = 0; l < W; ++l) x[l] = f64(x[l], y[l]); return x; }
INLINE F vfma(F x, F y, F z) { for (int l = 0; l < W; ++l) x[l] = __builtin_fmaf(x[l], y[l], z[l]); return x; }
INLINE D vfma(D x, D y, D z) { for (int l = 0; l < W; ++l) x[l] = __builtin_fma(x[l], y[l], z[l]); return x; }
INLINE F vfma(F x, F y, float z) { return vfma(x, y, splat_f(z)); }
INLINE F vfma(float x, F y, float z) { return vfma(splat_f(x), y, splat_f(z)); }
EACH1(vsqrt, __builtin_sqrtf, __builtin_sqrt)
EACH1(vfloor, __builtin_floorf, __builtin_floor)
EACH1(vceil, __builtin_ceilf, __builtin_ceil)
EACH1(vtrunc, __builtin_truncf, __builtin_trunc)
EACH1(vround, __builtin_rintf, __builtin_rint)
EACH1(vexp2, __builtin_exp2f, __builtin_exp2)
EACH1(vexpm1, __builtin_expm1f, __builtin_expm1)
EACH1(vlog2, __builtin_log2f, __builtin_log2)
EACH1(vlog10, __builtin_log10f, __builtin_log10)
EACH1D(vlog1p, __builtin_log1p)
EACH1(vtan, __builtin_tanf, __builtin_tan)
EACH1(vasin, __builtin_asinf, __builtin_asin)
EACH1(vacos, __builtin_acosf, __builtin_acos)
EACH1(vatan, __builtin_atanf, __builtin_atan)
EACH1(vsinh, __builtin_sinhf, __builtin_sinh)
EACH1(vcosh, __builtin_coshf, __builtin_cosh)
EACH1(vasinh, __builtin_asinhf, __builtin_asinh)
EACH1(vacosh, __builtin_acoshf, __builtin_acosh)
EACH1(vatanh, __builtin_atanhf, __builtin_atanh)
EACH1(verfc, __builtin_erfcf, __builtin_erfc)
EACH1D(vexp, __builtin_exp)
EACH1D(vlog, __builtin_log)
EACH1D(vsin, __builtin_sin)
EACH1D(vcos, __builtin_cos)
EACH1D(vtanh, __builtin_tanh)
EACH1D(verf, __builtin_erf)
EACH2(vpow, __builtin_powf, __builtin_pow)
EACH2(vatan2, __builtin_atan2f, __builtin_atan2)
INLINE D vsigmoid(D x) { return 1.0 / (1.0 + vexp(-x)); }
INLINE F vabs(F x) { return (F)((U)x & 0x7fffffffu); }
INLINE D vabs(D x) { return (D)((L)x & 0x7fffffffffffffffl); }
INLINE I vabs(I x) { return x < 0 ? -x : x; }
INLINE L vabs(L x) { return x < 0 ? -x : x; }
template <class V> INLINE V vsign(V x) { V zero = {}; return select(mask_of(x > zero), zero + 1, select(mask_of(x < zero), zero - 1, zero)); }

/// p * 2^n, whatever comes of it: 0, a number too small for full precision, infinity.
#if defined(__AVX512F__) && defined(__GNUC__)
INLINE F times_power(F p, F n) { return (F)__builtin_ia32_scalefps512_mask(p, n, F{}, (unsigned short)-1, 4); }
INLINE F between(F x, float low, float high) {   // what is not a number stays: these instructions give their second operand then
  const F above = (F)__builtin_ia32_maxps512_mask(splat_f(low), x, F{}, (unsigned short)-1, 4);
  return (F)__builtin_ia32_minps512_mask(splat_f(high), above, F{}, (unsigned short)-1, 4);
}
/// As maximum and minimum of x and what there is so far, in two instructions: the first keeps the second operand beside what is not a number, the second takes such an x.
INLINE F largest(F x, F so_far) { return (F)__builtin_ia32_fixupimmps512_mask((F)__builtin_ia32_maxps512_mask(x, so_far, F{}, (unsigned short)-1, 4), x, splat_i(0x22), 0, (unsigned short)-1, 4); }
INLINE F smallest(F x, F so_far) { return (F)__builtin_ia32_fixupimmps512_mask((F)__builtin_ia32_minps512_mask(x, so_far, F{}, (unsigned short)-1, 4), x, splat_i(0x22), 0, (unsigned short)-1, 4); }
#else
INLINE F largest(F x, F so_far) { return maximum(x, so_far); }
INLINE F smallest(F x, F so_far) { return minimum(x, so_far); }
INLINE F between(F x, float low, float high) {
  const F above = select(x < low, splat_f(low), x);
  return select(above > high, splat_f(high), above);
}
INLINE F times_power(F p, F n) {
  const I k = __builtin_convertvector(select(n == n, n, F{}), I), half = k >> 1;   // in two steps: each is a number
  return p * (F)((half + 127) << 23) * (F)((k - half + 127) << 23);
}
#endif
/// (e^r - 1 - r) / r^2 around 0, with an error of 6e-8; r is what x has beyond n times the logarithm of 2.
INLINE F exp_rest(F r) {
  F p = vfma(0.00139411045395f, r, 0.00836317525774f);
  p = vfma(p, r, 0.0416663753587f);
  p = vfma(p, r, 0.166665770059f);
  p = vfma(p, r, 0.500000002692f);
  return vfma(p, r * r, r) + 1.0f;
}
INLINE F vexp(F x) {
  const F y = between(x, -104.0f, 89.0f);
  const F n = vround(y * 1.44269504f);
  return times_power(exp_rest(vfma(n, splat_f(2.12194440e-4f), vfma(n, splat_f(-0.693359375f), y))), n);
}
/// For -80 < x < 80: nothing is cut off, and 2^n is an ordinary number.
INLINE F exp_near(F x) {
  const F n = vround(x * 1.44269504f);
  const F p = exp_rest(vfma(n, splat_f(2.12194440e-4f), vfma(n, splat_f(-0.693359375f), x)));
  return p * (F)((__builtin_convertvector(n, I) + 127) << 23);
}
/// The natural logarithm; error of the polynomial 2e-8.
INLINE F vlog(F x) {
  const I tiny = x < 1.17549435e-38f;
  const F big = select(tiny, x * 8388608.0f, x);
  const I bits = (I)big - 0x3f3504f3;                          // of sqrt(1/2): the rest lies around 1
  const F e = __builtin_convertvector((bits >> 23) - (tiny & 23), F);
  const F f = (F)((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  F p = vfma(0.0733231264508f, f, -0.116598301269f);
  p = vfma(p, f, 0.116346969802f);
  p = vfma(p, f, -0.12396716604f);
  p = vfma(p, f, 0.142511538212f);
  p = vfma(p, f, -0.166691502444f);
  p = vfma(p, f, 0.200006881228f);
  p = vfma(p, f, -0.249999811951f);
  p = vfma(p, f, 0.333333312567f);
  const F square = f * f;
  F y = f * square * p + e * -2.12194440e-4f - 0.5f * square;
  y = (y + f) + e * 0.693359375f;
  y = select(x == 0.0f, splat_f(-__builtin_inff()), y);
  y = select(x == __builtin_inff(), x, y);
  return select((x < 0.0f) | (x != x), splat_f(__builtin_nanf("")), y);
}
/// What 1 + x loses is given back by the quotient, which is near 1.
INLINE F vlog1p(F x) {
  const F u = 1.0f + x, d = u - 1.0f;
  return select((d == 0.0f) | (x == __builtin_inff()), x, vlog(u) * (x / d));
}
INLINE F vsigmoid(F x) { return 1.0f / (1.0f + vexp(-x)); }
INLINE F vtanh(F x) {
  const F a = vabs(x), z = x * x;
  F p = vfma(-0.00611318291568f, z, 0.021010074775f);
  p = vfma(p, z, -0.0538540681725f);
  p = vfma(p, z, 0.133327945353f);
  p = vfma(p, z, -0.333333292494f);
  const F small = a + a * (z * p);
  const F large = 1.0f - 2.0f / (vexp(a + a) + 1.0f);
  return (F)((U)select(a < 0.625f, small, large) | ((U)x & 0x80000000u));   // the sign of -0.0, too
}
/// Below 1 a polynomial (1e-9), above it 1 - e^-q (2e-8).
struct Erf { F small, complement; };   // erf(x) near 0; 1 - erf(|x|) elsewhere
INLINE Erf erf_parts(F x, F a) {
  const F z = x * x;
  F p = vfma(7.85385325902e-5f, z, -0.000801019117368f);
  p = vfma(p, z, 0.00518832740667f);
  p = vfma(p, z, -0.0268538117884f);
  p = vfma(p, z, 0.112835851451f);
  p = vfma(p, z, -0.376126258239f);
  p = vfma(p, z, 1.12837916573f);
  const F t = select(a > 4.0f, splat_f(4.0f), a);
  F q = vfma(-0.0011504303051f, t, 0.0147781807988f);   // less than nothing: it is the exponent
  q = vfma(q, t, -0.0886343509857f);
  q = vfma(q, t, -0.654488695126f);
  q = vfma(q, t, -1.11743865878f);
  q = vfma(q, t, -0.00267165399367f);
  return {x * p, exp_near(q)};
}
INLINE F verf(F x) {
  const F a = vabs(x);
  const Erf e = erf_parts(x, a);
  return select(a < 1.0f, e.small, (F)((U)(1.0f - e.complement) | ((U)x & 0x80000000u)));
}
/// 2^y for -126 < y <= 0; error of the polynomial 2e-9. Elsewhere something.
INLINE F power_of_two(F y) {
  const F n = vround(y), r = y - n;
  F p = vfma(0.000154762997f, r, 0.00134002697298f);
  p = vfma(p, r, 0.00961800389144f);
  p = vfma(p, r, 0.0555032779096f);
  p = vfma(p, r, 0.240226513459f);
  p = vfma(p, r, 0.693147206248f);
  p = vfma(p, r, 1.0f);
#if defined(__AVX512F__) && defined(__GNUC__)
  return times_power(p, n);
#else
  return p * (F)((__builtin_convertvector(n, I) + 127) << 23);
#endif
}
/// 1 + erf(x), also where erf(x) is nearly -1: nothing is lost there. 1 - erf(|x|) is a power of two, whose exponent is a polynomial (2e-8 of the result;
/// with roundings 8e-8). What is not a number stays.
INLINE F verf_plus_one(F x) {
  const F a = vabs(x);
  F q = vfma(-4.24474745147e-5f, a, 0.000423350877105f);
  q = vfma(q, a, -0.00142351524445f);
  q = vfma(q, a, -0.000872525286142f);
  q = vfma(q, a, 0.0283304055964f);
  q = vfma(q, a, -0.148512407293f);
  q = vfma(q, a, -0.918410802803f);
  q = vfma(q, a, -1.62790891931f);
  const F complement = select(a > 4.0f, F{}, power_of_two(q * a));
  return select(x < 0.0f, complement, 2.0f - complement);
}
INLINE D verf_plus_one(D x) { for (int l = 0; l < W; ++l) x[l] = 1.0 + __builtin_erf(x[l]); return x; }
/// Sine (swap 0) and cosine (swap 1). Far from 0 the library's, which reduce the angle with more digits.
INLINE F sine(F x, int swap) {
  bool is_far = false;
  for (int l = 0; l < W; ++l) is_far |= !(__builtin_fabsf(x[l]) < 4096.0f);
  if (is_far) {
    for (int l = 0; l < W; ++l) x[l] = swap ? __builtin_cosf(x[l]) : __builtin_sinf(x[l]);
    return x;
  }
  const F n = (x * 0.636619772f + 12582912.0f) - 12582912.0f;
  const F r = ((x - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54978942e-8f;
  const F z = r * r;
  F s = vfma(-0.00019588008382f, z, 0.00833274899486f);
  s = vfma(s, z, -0.166666646679f);
  s = select(r == 0.0f, r, r + r * (z * s));   // -0.0 stays what it is
  F c = vfma(2.45480400731e-5f, z, -0.00138883036397f);
  c = vfma(c, z, 0.0416666646641f);
  c = (1.0f - 0.5f * z) + (z * z) * c;
  const I k = __builtin_convertvector(n, I) + swap;
  const F y = select((k & 1) != 0, c, s);
  return select((k & 2) != 0, -y, y);
}
// Scans: all of a row up to an element, in order. What there is so far goes from vector to vector.
template <class V, class T, class Op> INLINE V scan(V x, T& so_far, Op op) {
  typedef T Wide __attribute__((vector_size(sizeof(T) * W)));
  Wide v = __builtin_convertvector(x, Wide);
  alignas(64) T lane[W];                                       // through memory: lanes of a vector are slow to take one by one
  __builtin_memcpy(lane, &v, sizeof v);
  for (int l = 0; l < W; ++l) lane[l] = so_far = op(so_far, lane[l]);
  __builtin_memcpy(&v, lane, sizeof v);
  return __builtin_convertvector(v, V);
}
template <class V, class T> INLINE V scan_sum(V x, T& so_far) { return scan(x, so_far, [](T a, T b) { return a + b; }); }
template <class V, class T> INLINE V scan_prod(V x, T& so_far) { return scan(x, so_far, [](T a, T b) { return a * b; }); }
/// log(exp(a) + exp(b))
INLINE F log_add(F a, F b) {
  const F large = maximum(a, b), small = minimum(a, b);
  return select((a == b) & (vabs(a) == __builtin_inff()), a, large + vlog1p(vexp(small - large)));
}
INLINE double log_add(double a, double b) {
  if (a != a || b != b) return a + b;
  const double large = a > b ? a : b, small = a > b ? b : a;
  return large == small && __builtin_isinf(a) ? a : large + __builtin_log1p(__builtin_exp(small - large));
}
INLINE F scan_logsumexp(F x, float& so_far) {
  for (int s = 1; s < W; s *= 2) {
    F before = splat_f(-__builtin_inff());
    for (int l = s; l < W; ++l) before[l] = x[l - s];
    x = log_add(x, before);
  }
  x = log_add(x, splat_f(so_far));
  so_far = x[W - 1];
  return x;
}
INLINE D scan_logsumexp(D x, double& so_far) { for (int l = 0; l < W; ++l) x[l] = so_far = log_add(so_far, x[l]); return x; }
// The same down columns: each lane is a scan of its own.
template <class V, class T> INLINE V down_scan_sum(V x, T& so_far) { so_far = so_far + __builtin_convertvector(x, T); return __builtin_convertvector(so_far, V); }
template <class V, class T> INLINE V down_scan_prod(V x, T& so_far) { so_far = so_far * __builtin_convertvector(x, T); return __builtin_convertvector(so_far, V); }
INLINE F down_scan_logsumexp(F x, F& so_far) { return so_far = log_add(x, so_far); }
INLINE D down_scan_logsumexp(D x, D& so_far) { for (int l = 0; l < W; ++l) so_far[l] = log_add(so_far[l], x[l]); return so_far; }
INLINE F vsin(F x) { return sine(x, 0); }
INLINE F vcos(F x) { return sine(x, 1); }
)";

}  // namespace

std::string prelude(int lanes) { return "constexpr int W = " + std::to_string(lanes) + ";   // elements of a vector\n" + (kText + 1); }

}  // namespace cutaway::codegen
