// Random numbers as torch's CPU generator draws them, many at a time: the same words in the same order, and the same state behind them.
// Main functions: fill_bernoulli, fill_uniform.
#pragma once
#include <cstdint>

namespace cutaway::kernels {

/// The generator's state (mt19937). The next word is state[next], while `left` is above 1; then all words are made anew.
struct Mersenne {
  static constexpr int kWords = 624;
  uint32_t state[kWords];
  int32_t left = 1;
  uint32_t next = 0;
};

/// The next words, in order.
void draw_words(Mersenne&, uint32_t* into, int64_t count);

/// Each element takes two words, the first one high; 53 bits of them as a number below 1 are less than p: `one` is written, else zero bits.
/// `bytes` is the size of an element: 1, 2, 4 or 8.
void fill_bernoulli(Mersenne&, double p, void* into, int64_t count, int bytes, uint64_t one);

/// Numbers in [0, 1): 24 bits of one word, or 53 of two.
void fill_uniform(Mersenne&, float* into, int64_t count);
void fill_uniform(Mersenne&, double* into, int64_t count);

}  // namespace cutaway::kernels
