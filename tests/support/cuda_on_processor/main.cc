// Runs texts for CUDA cards on a processor: a thread for each of a block's, one block after the other, and compares with plain loops in double.
// "kernels.inc" is written by cuda_run_test.cc: the texts, with the card's own instructions replaced, and for each kernel run_<value> (its function),
// blocks_<value> and threads_<value>, by the value that it writes.
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

struct Index { int x = 0, y = 0; };
static thread_local Index threadIdx, blockIdx, blockDim;
static std::barrier<>* together;
static double exchanged[1024];
#define __syncthreads() together->arrive_and_wait()
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __restrict
#define __global__
#define __device__
#define __launch_bounds__(...)
static float __int_as_float(unsigned u) { float f; std::memcpy(&f, &u, 4); return f; }
static unsigned __float_as_uint(float f) { unsigned u; std::memcpy(&u, &f, 4); return u; }
static double __longlong_as_double(long long u) { double f; std::memcpy(&f, &u, 8); return f; }
template <class T> T __shfl_xor_sync(unsigned, T v, int far) {
  exchanged[threadIdx.x] = static_cast<double>(v);
  together->arrive_and_wait();
  const T other = static_cast<T>(exchanged[threadIdx.x ^ far]);
  together->arrive_and_wait();
  return other;
}
#include "kernels.inc"

static int asserted = 0;
extern "C" void __assertfail(const void*, const void*, unsigned, const void*, size_t) { ++asserted; }

static int failures = 0;
static void launch(int blocks, int threads, const std::function<void()>& kernel) {
  std::barrier<> barrier(threads);
  together = &barrier;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      threadIdx.x = t;
      blockDim.x = threads;
      for (int b = 0; b < blocks; ++b) {
        blockIdx.x = b;
        kernel();
        barrier.arrive_and_wait();
      }
    });
  for (std::thread& t : all) t.join();
}
#define LAUNCH(value, ...) launch(blocks_##value, threads_##value, [&] { run_##value(__VA_ARGS__); })

static double worst = 0;
static void compare(double want, double got, double scale) { worst = std::fmax(worst, std::isnan(got) ? 1e9 : std::fabs(want - got) / scale); }
static void judge(const char* what, double most) {
  std::printf("%s: %g (at most %g)\n", what, worst, most);
  failures += !(worst <= most);
  worst = 0;
}

template <class T> struct alignas(16) Lot {   // addresses as torch gives them
  explicit Lot(size_t n) : memory(n * sizeof(T) + 16) {}
  std::vector<char> memory;
  T* data() { return reinterpret_cast<T*>((reinterpret_cast<size_t>(memory.data()) + 15) / 16 * 16); }
  T& operator[](size_t i) { return data()[i]; }
};
static float any() { return static_cast<float>(std::rand() % 2001 - 1000) / 150; }

int main() {
  constexpr int R = 6, N = 768;
  constexpr double kHalfUnit = 1.0 / 256;   // of bfloat16, beside the smallest number of its size
  Lot<bf16_bits> x(R * N), r(R * N), w(N), b(N), y(R * N), g(R * N), q(R * N), p(R * N);
  for (int i = 0; i < R * N; ++i) x[i] = memory_bf16(any()), r[i] = memory_bf16(any());
  for (int i = 0; i < N; ++i) w[i] = memory_bf16(any()), b[i] = memory_bf16(any());
  LAUNCH(y, x.data(), r.data(), w.data(), b.data(), y.data());
  for (int i = 0; i < R; ++i) {
    double mean = 0, variance = 0;
    std::vector<double> s(N);
    for (int j = 0; j < N; ++j) mean += (s[j] = round_bf16(number(x[i * N + j]) + number(r[i * N + j]))) / N;
    for (double e : s) variance += (e - mean) * (e - mean) / N;
    for (int j = 0; j < N; ++j) {
      const double want = (s[j] - mean) / std::sqrt(variance + 1e-5) * number(w[j]) + number(b[j]);
      compare(want, number(y[i * N + j]), 1e-2 + std::fabs(want));
    }
  }
  judge("layer norm", kHalfUnit * 1.01);
  LAUNCH(g, x.data(), g.data());
  LAUNCH(q, x.data(), q.data());
  LAUNCH(p, x.data(), p.data());
  for (int i = 0; i < R * N; ++i) {
    const double v = number(x[i]), want = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    compare(want, number(g[i]), std::fmax(std::fabs(want), 1e-30));
  }
  judge("gelu", kHalfUnit * 1.01);
  for (int i = 0; i < R * N; ++i) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(number(x[i]))));
    compare(want, number(q[i]), want);
  }
  judge("sigmoid", kHalfUnit * 1.01);
  for (int i = 0; i < R; ++i) {
    double sum = 0;
    for (int j = 0; j < N; ++j) sum += std::exp(static_cast<double>(number(x[i * N + j])));
    for (int j = 0; j < N; ++j) {
      const double want = std::exp(static_cast<double>(number(x[i * N + j]))) / sum;
      compare(want, number(p[i * N + j]), want);
    }
  }
  judge("softmax", kHalfUnit * 1.01);

  Lot<long> ids(5);
  Lot<float> table(10 * 64), z(5);
  for (int i = 0; i < 640; ++i) table[i] = any();
  const long chosen[] = {1, 9, 0, 3, 3};
  for (int i = 0; i < 5; ++i) ids[i] = chosen[i];
  LAUNCH(z, ids.data(), table.data(), z.data());
  for (int i = 0; i < 5; ++i) {
    double want = 0;
    for (int j = 0; j < 64; ++j) want += table[ids[i] * 64 + j];
    compare(want, z[i], 1);
  }
  judge("embedding", 1e-4);
  failures += asserted != 0;

  Lot<float> a(33 * 688), weight(24 * 688), bias(24), c(33 * 24);
  for (int i = 0; i < 33 * 688; ++i) a[i] = any();
  for (int i = 0; i < 24 * 688; ++i) weight[i] = any();
  for (int i = 0; i < 24; ++i) bias[i] = any();
  LAUNCH(c, a.data(), weight.data(), bias.data(), c.data());
  for (int i = 0; i < 33; ++i)
    for (int j = 0; j < 24; ++j) {
      double want = bias[j];
      for (int k = 0; k < 688; ++k) want += static_cast<double>(a[i * 688 + k]) * weight[j * 688 + k];
      compare(want, c[i * 24 + j], 688);
    }
  judge("product", 1e-5);

  Lot<float> image(3 * 6 * 9 * 9), pool(3 * 6 * 5 * 5);
  for (int i = 0; i < 3 * 6 * 81; ++i) image[i] = any();
  LAUNCH(pool, image.data(), pool.data());
  for (int n = 0; n < 18; ++n)
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) {
        double want = -1e30;
        for (int u = 2 * i - 1; u <= 2 * i + 1; ++u)
          for (int v = 2 * j - 1; v <= 2 * j + 1; ++v)
            if (u >= 0 && u < 9 && v >= 0 && v < 9) want = std::fmax(want, image[n * 81 + u * 9 + v]);
        compare(want, pool[n * 25 + i * 5 + j], 1);
      }
  judge("pool", 0);

  Lot<bf16_bits> first(8 * 300 * 9), second(33 * 8), third(11 * 8), last(8 * 300 * 9), joined(44 * 8);
  for (int i = 0; i < 8 * 300 * 9; ++i) first[i].bits = static_cast<unsigned short>(i);
  for (int i = 0; i < 33 * 8; ++i) second[i].bits = static_cast<unsigned short>(i);
  for (int i = 0; i < 11 * 8; ++i) third[i].bits = static_cast<unsigned short>(1000 + i);
  const auto bytes = [](Lot<bf16_bits>& l) { return reinterpret_cast<char*>(l.data()); };
  LAUNCH(joined, bytes(second), bytes(third), bytes(first), bytes(joined), bytes(last));
  for (int n = 0; n < 8; ++n)
    for (int k = 0; k < 300; ++k)
      for (int s = 0; s < 9; ++s) compare(first[(n * 300 + k) * 9 + s].bits, last[(n * 9 + s) * 300 + k].bits, 1);
  for (int i = 0; i < 44 * 8; ++i) compare(i < 33 * 8 ? second[i].bits : third[i - 33 * 8].bits, joined[i].bits, 1);
  judge("copies of weights", 0);
  return failures ? 1 : 0;
}
