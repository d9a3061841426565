#include "compiler/kernels/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compiler/kernels/gemm_kernels.h"

namespace kernels = cutaway::kernels;
using kernels::Batches;
using kernels::GemmBuild;
using kernels::MatrixOf;
using kernels::OptionsOf;
using kernels::Parallel;
using kernels::Product;
using kernels::TileOf;

namespace {

std::mt19937_64& dice() {
  static std::mt19937_64 generator(17);
  return generator;
}
int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(dice()); }

template <class T>
void run(const GemmBuild& build, const Product<T>& p, const Parallel& parallel = {}) {
  if (p.m == 0 || p.n == 0 || p.batches.count == 0) return;      // what gemm.cc does
  if constexpr (sizeof(T) == 4) build.f32(p, parallel);
  else build.f64(p, parallel);
}

void run_on_threads(void*, int64_t parts, void (*body)(void*, int64_t), void* context) {
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < parts; ++i) threads.emplace_back([=] { body(context, i); });
  body(context, 0);
  for (std::thread& t : threads) t.join();
}
void run_backwards(void*, int64_t parts, void (*body)(void*, int64_t), void* context) {
  for (int64_t i = parts - 1; i >= 0; --i) body(context, i);
}

/// Memory of a matrix in some layout, with room between rows, and its elements by index.
template <class T>
struct Operand {
  enum Layout { by_rows, by_columns, loose, repeated_rows, repeated_columns, backwards, kLayouts };
  std::vector<T> memory;
  MatrixOf<T> matrix;

  Operand(int64_t rows, int64_t columns, int layout, int64_t gap = 0) {
    int64_t row = 1, column = 1;
    switch (layout) {
      case by_rows: row = columns + gap; break;
      case by_columns: column = rows + gap; break;
      case loose: column = 3; row = 3 * columns + gap; break;
      case repeated_rows: row = 0; break;
      case repeated_columns: column = 0; break;
      default: row = -(columns + gap); break;
    }
    const int64_t first = row < 0 ? -row * std::max<int64_t>(rows - 1, 0) : 0;
    const int64_t size = rows && columns ? std::abs(row) * (rows - 1) + column * (columns - 1) + 1 : 0;
    std::normal_distribution<T> normal;
    memory.resize(size);        // not an element more: a read behind the end is for the sanitizer to see
    for (T& x : memory) x = normal(dice());
    matrix = {memory.data() + first, row, column};
  }
  T at(int64_t i, int64_t j) const { return matrix.data[i * matrix.row_stride + j * matrix.column_stride]; }
};

template <class T>
struct Case {
  int64_t m, n, k;
  Operand<T> a, b;
  int64_t c_row;
  std::vector<T> bias, old;
  T beta = 0;

  Case(int64_t m, int64_t n, int64_t k, int a_layout, int b_layout, int64_t gap = 0)
      : m(m), n(n), k(k), a(m, k, a_layout, gap), b(k, n, b_layout, gap), c_row(n + gap), old(std::max<int64_t>(m * c_row, 1)) {
    for (T& x : old) x = T(draw(-4, 4));
  }
  OptionsOf<T> options() const { return {bias.empty() ? nullptr : bias.data(), beta, nullptr, nullptr}; }
  std::vector<T> result(const GemmBuild& build, const Parallel& parallel = {}) const {
    std::vector<T> c = old;
    run<T>(build, {m, n, k, a.matrix, b.matrix, c.data(), c_row, options(), {}}, parallel);
    return c;
  }
  /// Largest error against a sum in long double, in units of what a plain sum may be wrong by.
  double error(const std::vector<T>& c) const {
    double worst = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < c_row; ++j) {
        const T got = c[i * c_row + j];
        if (j >= n) {
          if (got != old[i * c_row + j]) return 1e9;      // between rows nothing is written
          continue;
        }
        long double sum = 0, size = 0;
        for (int64_t q = 0; q < k; ++q) {
          const long double x = static_cast<long double>(a.at(i, q)) * b.at(q, j);
          sum += x;
          size += std::abs(x);
        }
        if (!bias.empty()) sum += bias[j], size += std::abs(bias[j]);
        if (beta != 0) sum += static_cast<long double>(beta) * old[i * c_row + j], size += std::abs(static_cast<long double>(beta) * old[i * c_row + j]);
        const long double allowed = (k + 2) * std::numeric_limits<T>::epsilon() / 2 * size;
        const long double off = std::abs(sum - got);
        if (off > 0) worst = std::max(worst, allowed > 0 ? static_cast<double>(off / allowed) : 1e9);
      }
    return worst;
  }
  std::string name(const GemmBuild& build) const {
    return std::string(build.name) + (sizeof(T) == 4 ? " f32 " : " f64 ") + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
           ", strides of A " + std::to_string(a.matrix.row_stride) + ", " + std::to_string(a.matrix.column_stride) + ", of B " +
           std::to_string(b.matrix.row_stride) + ", " + std::to_string(b.matrix.column_stride) + (bias.empty() ? "" : ", bias") + ", beta " + std::to_string(beta);
  }
};

template <class T>
void check_random(int count) {
  for (int i = 0; i < count; ++i) {
    const int64_t most = i % 3 == 0 ? 9 : 70;
    Case<T> c(draw(0, most), draw(0, most), draw(0, most), int(draw(0, Operand<T>::kLayouts - 1)), int(draw(0, Operand<T>::kLayouts - 1)), draw(0, 2));
    if (draw(0, 1)) {
      c.bias.resize(c.n + 1);
      for (T& x : c.bias) x = T(draw(-3, 3));
    }
    if (draw(0, 1)) c.beta = T(draw(0, 1) ? 1 : -0.5);
    for (const GemmBuild* build : kernels::gemm_builds()) {
      INFO(c.name(*build));
      CHECK(c.error(c.result(*build)) <= 1);
    }
  }
}

template <class T>
bool equal_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

/// Counts how often each element of C was handed over, and doubles it there.
template <class T>
struct Seen {
  std::mutex mutex;
  int64_t rows, columns;
  const T* c;
  int64_t c_row, c_batch;
  std::vector<int> count;
  bool is_wrong = false;

  static void epilogue(const void* context, const TileOf<T>& tile) {
    Seen& seen = *static_cast<Seen*>(const_cast<void*>(context));
    std::lock_guard lock(seen.mutex);
    seen.is_wrong |= tile.data != seen.c + tile.batch * seen.c_batch + tile.row * seen.c_row + tile.column || tile.stride != seen.c_row;
    seen.is_wrong |= tile.row < 0 || tile.column < 0 || tile.row + tile.rows > seen.rows || tile.column + tile.columns > seen.columns;
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t j = 0; j < tile.columns; ++j) {
        ++seen.count[(tile.batch * seen.rows + tile.row + i) * seen.columns + tile.column + j];
        tile.data[i * tile.stride + j] *= 2;
      }
  }
};

}  // namespace

TEST_CASE("matrix product: small sizes of every layout are within the error of a plain sum") {
  REQUIRE(!kernels::gemm_builds().empty());
  check_random<float>(400);
  check_random<double>(200);
}

TEST_CASE("matrix product: sizes of models, and sizes that cross every block") {
  const int64_t sizes[][3] = {{1, 1000, 256}, {3, 130, 1024}, {4, 200, 33}, {130, 100, 385}, {64, 64, 64}, {257, 33, 40}, {300, 70, 800}, {15, 512, 16}, {128, 1, 300}, {200, 4, 512}, {29, 65, 769}};
  for (const auto& [m, n, k] : sizes)
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b) {
        Case<float> c(m, n, k, a, b);
        for (const GemmBuild* build : kernels::gemm_builds()) {
          INFO(c.name(*build));
          CHECK(c.error(c.result(*build)) <= 1);
        }
      }
}

TEST_CASE("matrix product: against fp64 no worse than a plain float product") {
  for (int64_t rows : {2, 40}) {
    Case<float> c(rows, 40, 2000, 0, 1);
    for (const GemmBuild* build : kernels::gemm_builds()) {
      const std::vector<float> got = c.result(*build);
      double ours = 0, plain = 0;
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < c.n; ++j) {
          double exact = 0;
          float sum = 0;
          for (int64_t q = 0; q < c.k; ++q) {
            exact += double(c.a.at(i, q)) * c.b.at(q, j);
            sum += c.a.at(i, q) * c.b.at(q, j);
          }
          ours += std::pow(got[i * c.n + j] - exact, 2);
          plain += std::pow(sum - exact, 2);
        }
      INFO(build->name);
      CHECK(ours < plain);
    }
  }
}

TEST_CASE("matrix product: the same bits for any number of threads and any order of parts") {
  const int64_t sizes[][3] = {{130, 200, 500}, {5, 700, 300}, {2, 900, 300}, {700, 3, 300}, {300, 20, 100}, {64, 31, 800}};
  for (const auto& [m, n, k] : sizes)
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b) {
        Case<float> c(m, n, k, a, b, 1);
        c.bias.assign(n, 0.3f);
        c.beta = 0.7f;
        for (const GemmBuild* build : kernels::gemm_builds()) {
          INFO(c.name(*build));
          const std::vector<float> alone = c.result(*build);
          for (int threads : {1, 2, 3, 7}) {
            CHECK(equal_bits(alone, c.result(*build, {run_on_threads, nullptr, threads})));
            CHECK(equal_bits(alone, c.result(*build, {run_backwards, nullptr, threads})));
          }
        }
      }
}

TEST_CASE("matrix product: an epilogue sees every element once, when its sum is complete") {
  const int64_t sizes[][3] = {{130, 200, 800}, {5, 700, 3}, {2, 900, 300}, {300, 3, 300}, {14, 33, 0}, {1, 1, 1}, {128, 1, 64}};
  for (const auto& [m, n, k] : sizes)
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        for (const GemmBuild* build : kernels::gemm_builds()) {
          Case<float> c(m, n, k, a, b, 2);
          c.bias.assign(n, 1.5f);
          INFO(c.name(*build));
          std::vector<float> expected = c.result(*build);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) expected[i * c.c_row + j] *= 2;
          std::vector<float> got = c.old;
          Seen<float> seen{{}, m, n, got.data(), c.c_row, 0, std::vector<int>(m * n)};
          OptionsOf<float> options = c.options();
          options.epilogue = Seen<float>::epilogue;
          options.context = &seen;
          run<float>(*build, {m, n, k, c.a.matrix, c.b.matrix, got.data(), c.c_row, options, {}}, {run_on_threads, nullptr, 3});
          CHECK(std::all_of(seen.count.begin(), seen.count.end(), [](int x) { return x == 1; }));
          CHECK(!seen.is_wrong);
          CHECK(equal_bits(expected, got));
        }
}

TEST_CASE("matrix product: a batch equals its products one by one") {
  for (const GemmBuild* build : kernels::gemm_builds())
    for (bool is_repeated : {false, true})
      for (int64_t k : {0, 17, 64})
        for (int64_t n : {1, 3, 50, 64}) {
          const int64_t count = 5, m = 64;
          Operand<float> a(count * m, k, 0), b(is_repeated ? n : count * n, k, 0);
          std::vector<float> bias(count * n, 0.25f), one(count * m * n), all(count * m * n);
          const Batches batches{count, m * k, is_repeated ? 0 : n * k, m * n, n};
          OptionsOf<float> options{bias.data(), 0, nullptr, nullptr};
          Seen<float> seen{{}, m, n, all.data(), n, m * n, std::vector<int>(count * m * n)};
          for (int64_t i = 0; i < count; ++i)
            run<float>(*build, {m, n, k, {a.matrix.data + i * batches.a_stride, k, 1}, {b.matrix.data + i * batches.b_stride, 1, k}, one.data() + i * m * n, n, options, {}});
          for (float& x : one) x *= 2;
          options.epilogue = Seen<float>::epilogue;
          options.context = &seen;
          run<float>(*build, {m, n, k, {a.matrix.data, k, 1}, {b.matrix.data, 1, k}, all.data(), n, options, batches}, {run_on_threads, nullptr, 3});
          INFO(build->name << " n " << n << " k " << k);
          CHECK(equal_bits(one, all));
          CHECK(std::all_of(seen.count.begin(), seen.count.end(), [](int x) { return x == 1; }));
          CHECK(!seen.is_wrong);
        }
}

TEST_CASE("matrix product: NaN and infinity travel, an old C is not read without beta") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const GemmBuild* build : kernels::gemm_builds())
    for (int64_t m : {1, 5, 40})
      for (int b_layout = 0; b_layout < 2; ++b_layout) {
        INFO(build->name << " m " << m);
        Case<float> c(m, 37, 50, 0, b_layout);
        std::fill(c.old.begin(), c.old.end(), nan);
        CHECK(c.error(c.result(*build)) <= 1);
        // A zero in A does not hide what B holds.
        std::fill(c.a.memory.begin(), c.a.memory.end(), 0.0f);
        const int64_t at = b_layout == 0 ? 20 * 37 + 9 : 9 * 50 + 20;      // row 20, column 9
        c.b.memory[at] = inf;
        const std::vector<float> got = c.result(*build);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < 37; ++j) CHECK(std::isnan(got[i * 37 + j]) == (j == 9));
      }
}

TEST_CASE("matrix product: sizes of zero") {
  std::vector<float> c(6, 7.0f), bias = {1, 2, 3};
  const OptionsOf<float> options{bias.data(), 0, nullptr, nullptr};
  kernels::gemm(0, 3, 4, {nullptr, 4, 1}, {nullptr, 3, 1}, c.data(), 3, options);
  kernels::gemm(2, 0, 4, {nullptr, 4, 1}, {nullptr, 0, 1}, c.data(), 3);
  kernels::batched_gemm({0, 0, 0, 0, 0}, 2, 3, 0, {nullptr, 0, 1}, {nullptr, 3, 1}, c.data(), 3, options);
  CHECK(c == std::vector<float>(6, 7.0f));
  kernels::gemm(2, 3, 0, {nullptr, 0, 1}, {nullptr, 3, 1}, c.data(), 3, options);
  CHECK(c == std::vector<float>{1, 2, 3, 1, 2, 3});
  kernels::gemm(2, 3, 0, {nullptr, 0, 1}, {nullptr, 3, 1}, c.data(), 3, {nullptr, 2.0f, nullptr, nullptr});
  CHECK(c == std::vector<float>{2, 4, 6, 2, 4, 6});
}

TEST_CASE("products with a packed weight give the same bits") {
  const auto check = [](const GemmBuild& build, auto zero, auto pack) {
    using T = decltype(zero);
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 20, 30}, {14, 64, 40}, {15, 5, 400}, {33, 100, 1000}, {70, 33, 384}, {300, 16, 769}})
      for (const bool by_rows : {true, false}) {
        std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), one(static_cast<size_t>(m * n)), two(static_cast<size_t>(m * n));
        for (T& x : a) x = T(draw(-1000, 1000)) / 999;
        for (T& x : b) x = T(draw(-1000, 1000)) / 999;
        const MatrixOf<T> weight{b.data(), by_rows ? n : 1, by_rows ? 1 : k};
        Product<T> p{m, n, k, {a.data(), k, 1}, weight, one.data(), n, {}, {}};
        const Parallel threads{run_on_threads, nullptr, 3};
        run(build, p, threads);
        const int64_t elements = pack(m, n, k, weight, static_cast<T*>(nullptr));
        if (elements == 0) continue;
        std::vector<T> packed(static_cast<size_t>(elements));
        pack(m, n, k, weight, packed.data());
        p.c = two.data();
        p.options.packed = packed.data();
        p.b.data = nullptr;   // not read
        run(build, p, threads);
        CHECK(std::memcmp(one.data(), two.data(), sizeof(T) * one.size()) == 0);
      }
  };
  for (const GemmBuild* build : kernels::gemm_builds()) {
    check(*build, float{}, build->pack_f32);
    check(*build, double{}, build->pack_f64);
  }
}
