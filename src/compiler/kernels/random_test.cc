#include "compiler/kernels/random.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace random_test {

using namespace cutaway::kernels;

namespace {

/// As a generator is after manual_seed: the words of its seed, and none of them drawn.
Mersenne seeded(uint32_t seed) {
  Mersenne m;
  m.state[0] = seed;
  for (uint32_t i = 1; i < Mersenne::kWords; ++i) m.state[i] = 1812433253u * (m.state[i - 1] ^ (m.state[i - 1] >> 30)) + i;
  return m;
}

}  // namespace

TEST_CASE("random: words are those of mt19937, in pieces of any size") {
  for (uint32_t seed : {0u, 5489u, 0xffffffffu}) {
    std::mt19937 reference(seed);
    Mersenne m = seeded(seed);
    std::vector<uint32_t> words(2000);
    for (int64_t size : {1, 2, 3, 622, 623, 624, 625, 626, 1247, 1248, 1249, 17, 0, 2000}) {
      draw_words(m, words.data(), size);
      for (int64_t i = 0; i < size; ++i) REQUIRE(words[static_cast<size_t>(i)] == reference());
    }
  }
}

TEST_CASE("random: a truth takes two words, the first one high, and 53 bits of them count") {
  for (double p : {0.0, 1e-17, 0.1, 0.5, 0.9, 1 - 0x1p-53, 1.0}) {
    std::mt19937 reference(7);
    Mersenne m = seeded(7);
    for (int64_t n : {1, 5, 311, 312, 313, 2048, 2049, 5000}) {
      std::vector<float> got(static_cast<size_t>(n));
      fill_bernoulli(m, p, got.data(), n, 4, 0x3f800000u);
      for (float x : got) {
        const uint64_t high = reference(), low = reference();
        REQUIRE(x == (static_cast<double>(((high << 32) | low) & ((uint64_t{1} << 53) - 1)) * 0x1p-53 < p ? 1.0f : 0.0f));
      }
    }
  }
}

}  // namespace random_test
