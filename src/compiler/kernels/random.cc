#include "compiler/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The loops below are plain; the compiler makes vectors of them, once for each instruction set, and the right one is chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define CUTAWAY_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define CUTAWAY_EACH_MACHINE
#endif

namespace cutaway::kernels {
namespace {

constexpr int kShift = 397, kWords = Mersenne::kWords;
constexpr int64_t kChunk = 4096;   ///< words at a time: they stay in the first cache

inline uint32_t twist(uint32_t a, uint32_t b) { return (((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1) ^ (b & 1u ? 0x9908b0dfu : 0u); }

/// All words anew. Each is made of an old one 397 further, or of a new one 227 before: far enough apart for vectors.
CUTAWAY_EACH_MACHINE void renew(uint32_t* s) {
  uint32_t old[kWords + 1];
  std::memcpy(old, s, sizeof(uint32_t) * kWords);
  for (int i = 0; i < kWords - kShift; ++i) s[i] = old[i + kShift] ^ twist(old[i], old[i + 1]);
  constexpr int kFirst = kWords - kShift;   // 227
  old[kWords] = s[0];
  for (int i = kFirst; i < 2 * kFirst; ++i) s[i] = s[i - kFirst] ^ twist(old[i], old[i + 1]);
  for (int i = 2 * kFirst; i < kWords; ++i) s[i] = s[i - kFirst] ^ twist(old[i], old[i + 1]);
}

CUTAWAY_EACH_MACHINE void temper(const uint32_t* from, uint32_t* into, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t y = from[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    y ^= y >> 18;
    into[i] = y;
  }
}

inline uint64_t bits_of(const uint32_t* words, int64_t i) { return ((static_cast<uint64_t>(words[2 * i]) << 32) | words[2 * i + 1]) & ((uint64_t{1} << 53) - 1); }

// Bits below 2^53 are compared as signed numbers: instruction sets have that comparison.
CUTAWAY_EACH_MACHINE void choose8(const uint32_t* words, int64_t limit, uint64_t* into, int64_t count, uint64_t one) {
  for (int64_t i = 0; i < count; ++i) into[i] = static_cast<int64_t>(bits_of(words, i)) < limit ? one : 0;
}
CUTAWAY_EACH_MACHINE void choose4(const uint32_t* words, int64_t limit, uint32_t* into, int64_t count, uint32_t one) {
  for (int64_t i = 0; i < count; ++i) into[i] = static_cast<int64_t>(bits_of(words, i)) < limit ? one : 0;
}
CUTAWAY_EACH_MACHINE void choose2(const uint32_t* words, int64_t limit, uint16_t* into, int64_t count, uint16_t one) {
  for (int64_t i = 0; i < count; ++i) into[i] = static_cast<int64_t>(bits_of(words, i)) < limit ? one : uint16_t{0};
}
CUTAWAY_EACH_MACHINE void choose1(const uint32_t* words, int64_t limit, uint8_t* into, int64_t count, uint8_t one) {
  for (int64_t i = 0; i < count; ++i) into[i] = static_cast<int64_t>(bits_of(words, i)) < limit ? one : uint8_t{0};
}

/// Calls f(words, first element, elements) until all have had theirs.
template <class F> void in_chunks(Mersenne& m, int64_t count, int64_t words_each, F&& f) {
  alignas(64) uint32_t words[kChunk];
  const int64_t most = kChunk / words_each;
  for (int64_t at = 0; at < count; at += most) {
    const int64_t some = std::min(most, count - at);
    draw_words(m, words, some * words_each);
    f(words, at, some);
  }
}

}  // namespace

void draw_words(Mersenne& m, uint32_t* into, int64_t count) {
  while (count > 0) {
    if (m.left <= 1) {
      renew(m.state);
      m.left = kWords + 1;   // the first word that is taken makes it 624, as in torch
      m.next = 0;
    }
    const int64_t some = std::min<int64_t>(count, m.left - 1);
    temper(m.state + m.next, into, some);
    m.next += static_cast<uint32_t>(some);
    m.left -= static_cast<int32_t>(some);
    into += some;
    count -= some;
  }
}

void fill_bernoulli(Mersenne& m, double p, void* into, int64_t count, int bytes, uint64_t one) {
  // bits * 2^-53 < p, exactly: p * 2^53 is a power of two away from p.
  const double scaled = std::ceil(p * 0x1p53);
  const int64_t limit = scaled > 0x1p53 ? int64_t{1} << 53 : scaled > 0 ? static_cast<int64_t>(scaled) : 0;
  in_chunks(m, count, 2, [&](const uint32_t* words, int64_t at, int64_t some) {
    switch (bytes) {
      case 8: choose8(words, limit, static_cast<uint64_t*>(into) + at, some, one); break;
      case 4: choose4(words, limit, static_cast<uint32_t*>(into) + at, some, static_cast<uint32_t>(one)); break;
      case 2: choose2(words, limit, static_cast<uint16_t*>(into) + at, some, static_cast<uint16_t>(one)); break;
      default: choose1(words, limit, static_cast<uint8_t*>(into) + at, some, static_cast<uint8_t>(one)); break;
    }
  });
}

void fill_uniform(Mersenne& m, float* into, int64_t count) {
  in_chunks(m, count, 1, [&](const uint32_t* words, int64_t at, int64_t some) {
    for (int64_t i = 0; i < some; ++i) into[at + i] = static_cast<float>(static_cast<int32_t>(words[i] & 0xffffffu)) * 0x1p-24f;
  });
}

void fill_uniform(Mersenne& m, double* into, int64_t count) {
  in_chunks(m, count, 2, [&](const uint32_t* words, int64_t at, int64_t some) {
    for (int64_t i = 0; i < some; ++i) into[at + i] = static_cast<double>(static_cast<int64_t>(bits_of(words, i))) * 0x1p-53;
  });
}

}  // namespace cutaway::kernels
