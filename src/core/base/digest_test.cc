#include "core/base/digest.h"

#include <doctest/doctest.h>

#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "core/base/digest_kernels.h"

namespace digest_test {

using namespace cutaway::base;

namespace {
std::vector<unsigned char> random_bytes(size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<unsigned char> bytes(n);
  for (auto& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

std::vector<const kernels::Kernel*> runnable() {
  std::vector<const kernels::Kernel*> out = {&kernels::baseline};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) out.push_back(&kernels::avx2);
#endif
  return out;
}
}  // namespace

TEST_CASE("digest: the published values of XXH3-128") {
  // Of the empty text and of "a", as xxhsum -H2 prints them: a change here makes every store unreadable.
  CHECK(digest_text("").hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(digest_text("a").hex() == "a96faf705af16834e6c632b61e964e1f");
  CHECK(digest_bytes(nullptr, 0) == digest_text(""));
  CHECK_FALSE(digest_text("").is_none());
}

TEST_CASE("digest: every instruction set gives the same digests") {
  const auto bytes = random_bytes(300'000, 1);
  for (size_t n : {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 255, 256, 1023, 1024, 1025, 4096, 65536, 299'999}) {
    const Digest expected = kernels::baseline.whole(bytes.data() + 1, n);
    CHECK(digest_bytes(bytes.data() + 1, n) == expected);
    for (const kernels::Kernel* kernel : runnable()) {
      CAPTURE(kernel->name);
      CAPTURE(n);
      CHECK(kernel->whole(bytes.data() + 1, n) == expected);
      struct alignas(64) Memory { std::byte bytes[1024]; } state;
      REQUIRE(kernel->state_bytes <= sizeof state);
      kernel->reset(&state);
      kernel->update(&state, bytes.data() + 1, n / 3);
      kernel->update(&state, bytes.data() + 1 + n / 3, n - n / 3);
      CHECK(kernel->finish(&state) == expected);
    }
  }
}

TEST_CASE("digest: parts of any size give the digest of the whole") {
  const auto bytes = random_bytes(100'000, 2);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Hasher hasher;
    size_t at = 0;
    const size_t largest = round < 25 ? 40 : 9000;
    while (at < bytes.size()) {
      const size_t n = std::min<size_t>(random() % largest, bytes.size() - at);
      hasher.add(bytes.data() + at, n);
      at += n;
    }
    CHECK(hasher.finish() == digest_bytes(bytes.data(), bytes.size()));
    CHECK(hasher.finish() == hasher.finish());   // asking twice changes nothing
  }
  Hasher a;
  a.add("ab");
  Hasher b = std::move(a);
  CHECK(b.add("c").finish() == digest_text("abc"));
  CHECK(Hasher().finish() == digest_text(""));
}

TEST_CASE("digest: text form") {
  const Digest d = digest_text("cutaway");
  REQUIRE(Digest::parse(d.hex()).ok());
  CHECK(*Digest::parse(d.hex()) == d);
  CHECK(d.short_hex() == d.hex().substr(0, 4) + "…" + d.hex().substr(30));
  CHECK(Digest{1, 2}.hex() == "00000000000000010000000000000002");
  CHECK(Digest{}.is_none());
  for (std::string bad : {"", "12", "0000000000000001000000000000000g", "0000000000000001000000000000000A",
                          "000000000000000100000000000000020"}) {
    CAPTURE(bad);
    CHECK_FALSE(Digest::parse(bad).ok());
  }
}

TEST_CASE("digest: one changed bit anywhere changes the digest") {
  auto bytes = random_bytes(2000, 4);
  const Digest before = digest_bytes(bytes.data(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 1u << (i % 8);
    CHECK(digest_bytes(bytes.data(), bytes.size()) != before);
    bytes[i] ^= 1u << (i % 8);
  }
}

}  // namespace digest_test
