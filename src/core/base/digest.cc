#include "core/base/digest.h"

#include <cstdint>
#include <new>

#include "core/base/digest_kernels.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cutaway::base {

namespace kernels {
#include "core/base/digest_kernel_body.inc"

const Kernel baseline = {"baseline", sizeof(XXH3_state_t), whole, reset, update, finish};

namespace {
const Kernel& choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();   // also asks whether the operating system saves the wide registers
  if (__builtin_cpu_supports("avx2")) return avx2;
#endif
  return baseline;
}
}  // namespace

const Kernel& best() {
  static const Kernel& chosen = choose();
  return chosen;
}
}  // namespace kernels

namespace {
constexpr char kDigits[] = "0123456789abcdef";

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
}  // namespace

std::string Digest::hex() const {
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[i] = kDigits[(high >> (60 - 4 * i)) & 15];
    out[16 + i] = kDigits[(low >> (60 - 4 * i)) & 15];
  }
  return out;
}

std::string Digest::short_hex() const {
  const std::string all = hex();
  return all.substr(0, 4) + "…" + all.substr(30);
}

Result<Digest> Digest::parse(std::string_view hex) {
  if (hex.size() != 32) {
    return Error{.what = "a digest has 32 hexadecimal digits, this one has " + std::to_string(hex.size()) + " characters"};
  }
  Digest digest;
  for (size_t i = 0; i < hex.size(); ++i) {
    const int value = digit_value(hex[i]);
    if (value < 0) {
      return Error{.what = "a digest has lower-case hexadecimal digits only, character " + std::to_string(i + 1) + " is another"};
    }
    uint64_t& half = i < 16 ? digest.high : digest.low;
    half = (half << 4) | static_cast<uint64_t>(value);
  }
  return digest;
}

Digest digest_bytes(const void* data, size_t bytes) {
  // An empty span may have a null pointer, which the library takes but the sanitizer's rules for memcpy do not.
  return kernels::best().whole(bytes == 0 ? "" : data, bytes);
}

struct alignas(64) Hasher::State {
  std::byte memory[sizeof(XXH3_state_t)];
};

Hasher::Hasher() : state_(std::make_unique<State>()) { kernels::best().reset(state_->memory); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(const void* data, size_t bytes) {
  kernels::best().update(state_->memory, data, bytes);
  return *this;
}

Digest Hasher::finish() const { return kernels::best().finish(state_->memory); }

}  // namespace cutaway::base
