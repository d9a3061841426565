#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/nested.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {
namespace {

uint64_t mixed(uint64_t x) {   // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Up or down by the number itself: equal numbers stay equal. A number whose lower half is zeros was chosen by somebody (0, 1, 0.5, a count, a mask)
// and means exactly that: it stays.
template <class Bits, int mantissa> void nudge_all(void* data, size_t bytes, uint64_t round) {
  constexpr Bits kLow = (Bits{1} << ((mantissa + 1) / 2)) - 1;
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1), kInfinity = static_cast<Bits>((kSign - 1) & ~((Bits{1} << mantissa) - 1));
  for (size_t i = 0; i < bytes / sizeof(Bits); ++i) {
    Bits b;
    char* place = static_cast<char*>(data) + i * sizeof(Bits);
    std::memcpy(&b, place, sizeof b);
    const Bits magnitude = b & static_cast<Bits>(~kSign);
    if ((b & kLow) == 0 || magnitude >= kInfinity) continue;
    const bool is_up = (mixed(mixed(b) + round) & 1) != 0 && magnitude + 1 < kInfinity;
    b = static_cast<Bits>(is_up ? b + 1 : b - 1);
    std::memcpy(place, &b, sizeof b);
  }
}

void nudge(at::ScalarType type, void* data, size_t bytes, uint64_t round) {
  switch (c10::isComplexType(type) ? c10::toRealValueType(type) : type) {
    case at::kFloat: return nudge_all<uint32_t, 23>(data, bytes, round);
    case at::kDouble: return nudge_all<uint64_t, 52>(data, bytes, round);
    case at::kHalf: return nudge_all<uint16_t, 10>(data, bytes, round);
    case at::kBFloat16: return nudge_all<uint16_t, 7>(data, bytes, round);
    default: return;
  }
}

}  // namespace

std::vector<c10::IValue> nudge_last_bits(const std::vector<c10::IValue>& values, uint64_t round) {
  std::vector<c10::IValue> own = clone_keeping_aliases(values);
  std::unordered_set<const c10::StorageImpl*> done;
  const auto visit = [&](const at::Tensor& t) {
    if (why_not_strided(t) || why_no_data(t) || t._is_zerotensor() || !done.insert(t.storage().unsafeGetStorageImpl()).second) return t;
    const at::Storage& storage = t.storage();
    if (storage.device().is_cpu()) {
      nudge(t.scalar_type(), storage.mutable_data(), storage.nbytes(), round);
      return t;
    }
    bundle::TensorRecord bytes;
    bytes.dtype = ir::DType::u8;
    bytes.sizes = {static_cast<int64_t>(storage.nbytes())};
    bytes.strides = {1};
    at::Tensor there = view_storage(storage, bytes), here = there.cpu();
    nudge(t.scalar_type(), here.mutable_data_ptr(), storage.nbytes(), round);
    there.copy_(here);
    return t;
  };
  for (const c10::IValue& v : own) map_tensors(v, visit);
  return own;
}

}  // namespace cutaway::tensor
