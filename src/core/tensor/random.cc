// Random numbers that are the same everywhere. Element k of a storage is a function of (seed, k) alone, in integer arithmetic and
// exact floating-point steps: no libm, whose last bits differ between machines, and no state, so that it runs in any order.
//
// A normal number is the sum of twelve uniform ones of 21 bits, minus six: mean 0, variance 1, within [-6, 6], and no number that
// differs between machines. Test data needs no more; Box-Muller would need log and cos.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/rebuild.h"

namespace cutaway::tensor {
namespace {

// The finaliser of splitmix64: a bijection of 64 bits with good avalanche.
constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
constexpr int kDraws = 4;   // 64-bit numbers that one element may use

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : key_(mix(seed * kStep + 1)) {}
  uint64_t bits(uint64_t element, int draw = 0) const { return mix(key_ + (element * kDraws + draw + 1) * kStep); }
  double normal(uint64_t element) const {
    int64_t sum = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const uint64_t b = bits(element, draw);
      sum += static_cast<int64_t>((b & 0x1fffff) + ((b >> 21) & 0x1fffff) + ((b >> 42) & 0x1fffff));
    }
    return static_cast<double>(sum + 6 - (6 << 21)) * 0x1p-21;   // + 6: the middle of each step, so that the mean is 0
  }
  /// Uniform in [0, n), n > 0. The bias of a remainder is below n / 2^64.
  uint64_t below(uint64_t element, uint64_t n) const { return bits(element) % n; }

 private:
  uint64_t key_;
};

template <class T, class F> void fill_with(void* data, size_t bytes, F&& f) {
  T* out = static_cast<T*>(data);
  const size_t n = bytes / sizeof(T);
  for (size_t i = 0; i < n; ++i) out[i] = f(i);
}

// Whether [first, second) holds a number and every number in it fits the type.
template <class T> bool fits(const Range& r) {
  if (r.second <= r.first) return false;
  if constexpr (std::is_unsigned_v<T>) {
    if (r.first < 0) return false;
    return static_cast<uint64_t>(r.second - 1) <= std::numeric_limits<T>::max();
  } else {
    return r.first >= std::numeric_limits<T>::min() && r.second - 1 <= std::numeric_limits<T>::max();
  }
}

base::Error empty_range(const Range& r) {
  return {.what = "the range [" + std::to_string(r.first) + ", " + std::to_string(r.second) + ") of a random input is empty or does not fit its dtype"};
}

template <class T> base::Status fill_integers(void* data, size_t bytes, const Numbers& numbers, const std::optional<Range>& given) {
  const Range r = given.value_or(Range(0, 10));
  if (!fits<T>(r)) return empty_range(r);
  const uint64_t n = static_cast<uint64_t>(r.second) - static_cast<uint64_t>(r.first);
  fill_with<T>(data, bytes, [&](size_t i) { return static_cast<T>(static_cast<uint64_t>(r.first) + numbers.below(i, n)); });
  return {};
}

// Normal numbers, or whole ones where a range is given.
template <class T> base::Status fill_floating(void* data, size_t bytes, const Numbers& numbers, const std::optional<Range>& r) {
  using Exact = std::conditional_t<std::is_same_v<T, double>, double, float>;   // 25 bits to f32: one rounding, the same everywhere
  if (!r) {
    fill_with<T>(data, bytes, [&](size_t i) { return static_cast<T>(static_cast<Exact>(numbers.normal(i))); });
    return {};
  }
  if (r->second <= r->first) return empty_range(*r);
  const uint64_t n = static_cast<uint64_t>(r->second) - static_cast<uint64_t>(r->first);
  fill_with<T>(data, bytes, [&](size_t i) {
    return static_cast<T>(static_cast<Exact>(static_cast<int64_t>(static_cast<uint64_t>(r->first) + numbers.below(i, n))));
  });
  return {};
}

base::Status fill(void* data, size_t bytes, ir::DType dtype, const Numbers& numbers, const std::optional<Range>& range) {
  using D = ir::DType;
  switch (dtype) {
    case D::f64:
    case D::c128: return fill_floating<double>(data, bytes, numbers, range);
    case D::f32:
    case D::c64: return fill_floating<float>(data, bytes, numbers, range);
    case D::f16:
    case D::c32: return fill_floating<c10::Half>(data, bytes, numbers, range);
    case D::bf16: return fill_floating<c10::BFloat16>(data, bytes, numbers, range);
    case D::f8e5m2: return fill_floating<c10::Float8_e5m2>(data, bytes, numbers, range);
    case D::f8e4m3fn: return fill_floating<c10::Float8_e4m3fn>(data, bytes, numbers, range);
    case D::f8e5m2fnuz: return fill_floating<c10::Float8_e5m2fnuz>(data, bytes, numbers, range);
    case D::f8e4m3fnuz: return fill_floating<c10::Float8_e4m3fnuz>(data, bytes, numbers, range);
    case D::f8e8m0fnu:   // powers of two only, no sign: 1/8 to 8
      fill_with<uint8_t>(data, bytes, [&](size_t i) { return static_cast<uint8_t>(124 + numbers.below(i, 7)); });
      break;
    case D::boolean: fill_with<bool>(data, bytes, [&](size_t i) { return (numbers.bits(i) >> 63) != 0; }); break;
    case D::u8: return fill_integers<uint8_t>(data, bytes, numbers, range);
    case D::i8: return fill_integers<int8_t>(data, bytes, numbers, range);
    case D::u16: return fill_integers<uint16_t>(data, bytes, numbers, range);
    case D::i16: return fill_integers<int16_t>(data, bytes, numbers, range);
    case D::u32: return fill_integers<uint32_t>(data, bytes, numbers, range);
    case D::i32: return fill_integers<int32_t>(data, bytes, numbers, range);
    case D::u64: return fill_integers<uint64_t>(data, bytes, numbers, range);
    case D::i64: return fill_integers<int64_t>(data, bytes, numbers, range);
    default:   // bits and sub-byte types, whose bytes torch does not interpret; quantized ones are refused before
      fill_with<uint8_t>(data, bytes, [&](size_t i) { return static_cast<uint8_t>(numbers.bits(i) >> 56); });
  }
  return {};
}

base::Error cannot_make(const bundle::TensorRecord& r, const c10::Error& e, bool onto_given) {
  base::Error error{.what = "a random tensor of " + std::to_string(r.storage_bytes) + " bytes on " + r.device.text() + " cannot be made", .because = e.what_without_backtrace()};
  if (!onto_given && r.device.type != "cpu") error.hint = "ask for it on a device that is present (\"cpu\")";
  return error;
}

}  // namespace

base::Result<at::Storage> random_storage(const bundle::TensorRecord& r, uint64_t seed, std::optional<Range> range, std::optional<at::Device> onto) {
  if (ir::is_quantized(r.dtype)) return base::Error{.what = "no random data for the quantized dtype " + std::string(ir::dtype_name(r.dtype))};
  const std::optional<uint64_t> needed = bytes_needed(r);
  if (!needed) return base::Error{.what = "the view of a tensor does not fit into 64 bits"};
  const uint64_t bytes = std::max(*needed, r.storage_bytes);
  if (bytes > INT64_MAX) return base::Error{.what = "a storage of " + std::to_string(bytes) + " bytes does not fit into memory"};
  try {
    const at::Device device = onto ? *onto : to_aten(r.device);
    if (device.is_meta()) return at::Storage(at::Storage::use_byte_size_t{}, static_cast<int64_t>(bytes), c10::GetAllocator(at::kMeta), /*resizable=*/true);
    at::Storage host = empty_host_storage(bytes);
    if (bytes) std::memset(host.mutable_data(), 0, bytes);   // a tail that is no whole element
    CUTAWAY_TRY(fill(host.mutable_data(), bytes, r.dtype, Numbers(seed), range));
    if (device.is_cpu()) return host;
    return make_storage(host.data(), bytes, device);
  } catch (const c10::Error& e) {
    return cannot_make(r, e, onto.has_value());
  }
}

base::Result<at::Tensor> rand_strided(const bundle::TensorRecord& r, uint64_t seed, std::optional<Range> range, std::optional<at::Device> onto) {
  CUTAWAY_TRY_ASSIGN(at::Storage storage, random_storage(r, seed, range, onto));
  try {
    at::Tensor t = view_storage(storage, r);
    set_gradness(t, r.requires_grad, r.is_leaf);
    return t;
  } catch (const c10::Error& e) {
    return cannot_make(r, e, onto.has_value());
  }
}

}  // namespace cutaway::tensor
