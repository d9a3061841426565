#include "compiler/kernels/conv.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "compiler/kernels/gemm_kernels.h"

namespace kernels = cutaway::kernels;
using kernels::Convolution;

namespace conv_test {
namespace {

struct Shape { int64_t batch, channels, height, width, outputs, window, step, pad, dilation; };

Convolution make(const Shape& s, bool channels_last) {
  Convolution c;
  c.batch = s.batch;
  c.channels = s.channels;
  c.height = s.height;
  c.width = s.width;
  c.outputs = s.outputs;
  c.window_height = c.window_width = s.window;
  c.step_y = c.step_x = s.step;
  c.pad_y = c.pad_x = s.pad;
  c.dilation_y = c.dilation_x = s.dilation;
  c.out_height = (s.height + 2 * s.pad - s.dilation * (s.window - 1) - 1) / s.step + 1;
  c.out_width = (s.width + 2 * s.pad - s.dilation * (s.window - 1) - 1) / s.step + 1;
  const int64_t plain[] = {s.channels * s.height * s.width, s.height * s.width, s.width, 1};
  const int64_t last[] = {s.channels * s.height * s.width, 1, s.width * s.channels, s.channels};
  std::copy_n(channels_last ? last : plain, 4, c.x_strides);
  return c;
}

/// Calls f(element of x, of the weight, of the result) for every product of the convolution; x as a place in [batch, channels, height, width].
template <class F> void for_each_product(const Convolution& c, F&& f) {
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t o = 0; o < c.outputs; ++o)
      for (int64_t i = 0; i < c.out_height; ++i)
        for (int64_t j = 0; j < c.out_width; ++j)
          for (int64_t k = 0; k < c.channels; ++k)
            for (int64_t u = 0; u < c.window_height; ++u)
              for (int64_t v = 0; v < c.window_width; ++v) {
                const int64_t y = i * c.step_y - c.pad_y + u * c.dilation_y, x = j * c.step_x - c.pad_x + v * c.dilation_x;
                if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
                f(std::array<int64_t, 4>{b, k, y, x}, ((o * c.channels + k) * c.window_height + u) * c.window_width + v, ((b * c.outputs + o) * c.out_height + i) * c.out_width + j);
              }
}

void run_on_threads(void*, int64_t parts, void (*body)(void*, int64_t), void* context) {
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < parts; ++i) threads.emplace_back([=] { body(context, i); });
  body(context, 0);
  for (std::thread& t : threads) t.join();
}

template <class T> struct Seen { std::vector<int> times; int64_t rows, columns; };
template <class T> void count(const void* context, const kernels::TileOf<T>& t) {
  Seen<T>& seen = *const_cast<Seen<T>*>(static_cast<const Seen<T>*>(context));
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.columns; ++j) {
      ++seen.times[static_cast<size_t>((t.batch * seen.rows + t.row + i) * seen.columns + t.column + j)];
      t.data[i * t.stride + j] *= 2;
    }
}

template <class T> bool near(const std::vector<T>& found, const std::vector<double>& exact, double terms) {
  double most = 0;
  for (double x : exact) most = std::max(most, std::abs(x));
  for (size_t i = 0; i < exact.size(); ++i)
    if (!(std::abs(found[i] - exact[i]) <= (sizeof(T) == 4 ? 1e-6 : 4e-15) * (most + std::sqrt(terms)))) return false;
  return true;
}

template <class T> void check(const kernels::GemmBuild& build, const kernels::ConvBuildOf<T>& conv, const Shape& s, bool channels_last, const kernels::Parallel& parallel) {
  CAPTURE(build.name);
  CAPTURE(s.channels);
  CAPTURE(s.height);
  CAPTURE(s.window);
  const Convolution c = make(s, channels_last);
  std::mt19937_64 dice(7);
  const auto some = [&](int64_t n) {
    std::vector<T> out(static_cast<size_t>(n));
    for (T& x : out) x = std::uniform_real_distribution<T>(-1, 1)(dice);
    return out;
  };
  const int64_t inputs = c.batch * c.channels * c.height * c.width, results = c.batch * c.outputs * c.positions();
  const std::vector<T> x = some(inputs), weight = some(c.outputs * c.taps()), bias = some(c.outputs), grad = some(results);
  const auto x_at = [&](const std::array<int64_t, 4>& at) { return static_cast<size_t>(at[0] * c.x_strides[0] + at[1] * c.x_strides[1] + at[2] * c.x_strides[2] + at[3] * c.x_strides[3]); };
  std::vector<double> out_exact(static_cast<size_t>(results)), weight_exact(weight.size()), x_exact(x.size());
  for (size_t i = 0; i < out_exact.size(); ++i) out_exact[i] = bias[i / static_cast<size_t>(c.positions()) % static_cast<size_t>(c.outputs)];
  for_each_product(c, [&](const std::array<int64_t, 4>& at, int64_t w, int64_t y) {
    out_exact[static_cast<size_t>(y)] += double(x[x_at(at)]) * weight[static_cast<size_t>(w)];
    weight_exact[static_cast<size_t>(w)] += double(x[x_at(at)]) * grad[static_cast<size_t>(y)];
    x_exact[static_cast<size_t>(((at[0] * c.channels + at[1]) * c.height + at[2]) * c.width + at[3])] += double(grad[static_cast<size_t>(y)]) * weight[static_cast<size_t>(w)];
  });
  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> out(out_exact.size(), nan), to_weight(weight.size(), nan), back(x.size(), nan);
  Seen<T> seen{std::vector<int>(out.size()), c.outputs, c.positions()};
  conv.forward(c, x.data(), weight.data(), bias.data(), out.data(), {}, parallel);
  CHECK(near(out, out_exact, double(c.taps())));
  conv.forward(c, x.data(), weight.data(), bias.data(), out.data(), {count<T>, &seen}, parallel);
  for (double& e : out_exact) e *= 2;
  CHECK(near(out, out_exact, double(c.taps())));
  CHECK(std::ranges::all_of(seen.times, [](int n) { return n == 1; }));
  conv.to_weight(c, grad.data(), x.data(), to_weight.data(), parallel);
  CHECK(near(to_weight, weight_exact, double(c.batch * c.positions())));
  conv.backward(c, grad.data(), weight.data(), back.data(), parallel);
  CHECK(near(back, x_exact, double(c.outputs)));
}

}  // namespace
}  // namespace conv_test

TEST_CASE("convolutions: every build against a plain sum") {
  using namespace conv_test;
  const Shape shapes[] = {
      {1, 1, 1, 1, 1, 1, 1, 0, 1}, {2, 3, 9, 7, 5, 3, 1, 1, 1},  {2, 3, 16, 16, 15, 7, 2, 3, 1}, {3, 5, 2, 2, 29, 3, 1, 1, 1}, {5, 4, 4, 4, 33, 3, 1, 1, 1},
      {1, 7, 10, 33, 6, 1, 1, 0, 1}, {2, 7, 10, 9, 6, 1, 3, 0, 1}, {1, 2, 12, 12, 4, 3, 2, 2, 2},  {2, 50, 5, 5, 3, 3, 1, 0, 1}, {1, 3, 40, 37, 20, 3, 1, 1, 1},
  };
  for (const kernels::GemmBuild* build : kernels::gemm_builds())
    for (const Shape& s : shapes)
      for (const bool last : {false, true}) {
        check<float>(*build, build->conv_f32, s, last, {});
        check<double>(*build, build->conv_f64, s, last, {});
        check<float>(*build, build->conv_f32, s, last, {run_on_threads, nullptr, 3});
      }
}
