#include "compiler/kernels/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compiler/kernels/gemm_kernels.h"

namespace kernels = cutaway::kernels;

TEST_CASE("attention: every build against a plain sum") {
  struct Shape { int64_t batch, heads, rows, keys, width; bool is_causal, has_mask; };
  const Shape shapes[] = {{1, 1, 1, 1, 1, false, false}, {2, 3, 15, 33, 20, false, true}, {1, 2, 40, 40, 16, true, false}, {2, 1, 7, 800, 33, false, false}, {1, 1, 430, 430, 5, true, false}};
  for (const kernels::GemmBuild* build : kernels::gemm_builds())
    for (const Shape& s : shapes) {
      kernels::Attention a;
      a.batch = s.batch;
      a.heads = s.heads;
      a.rows = s.rows;
      a.keys = s.keys;
      a.width = s.width;
      a.is_causal = s.is_causal;
      a.scale = 0.4f;
      const auto strides = [&](int64_t* out, int64_t rows) {   // heads side by side in a row
        const int64_t all[] = {rows * s.heads * s.width, s.width, s.heads * s.width, 1};
        std::copy_n(all, 4, out);
      };
      strides(a.q, s.rows);
      strides(a.k, s.keys);
      strides(a.v, s.keys);
      strides(a.out, s.rows);
      a.mask[0] = s.rows * s.keys;   // the same for all heads
      a.mask[2] = s.keys;
      a.mask[3] = 1;
      a.logsumexp[0] = s.heads * s.rows;
      a.logsumexp[1] = s.rows;
      a.logsumexp[2] = 1;
      std::mt19937 dice(3);
      const auto some = [&](int64_t n) {
        std::vector<float> out(static_cast<size_t>(n));
        for (float& x : out) x = std::uniform_real_distribution<float>(-2, 2)(dice);
        return out;
      };
      const auto q = some(s.batch * s.rows * s.heads * s.width), k = some(s.batch * s.keys * s.heads * s.width), v = some(s.batch * s.keys * s.heads * s.width);
      std::vector<float> mask = some(s.batch * s.rows * s.keys), out(q.size()), sums(static_cast<size_t>(s.batch * s.heads * s.rows));
      if (s.keys > 2) mask[1] = -std::numeric_limits<float>::infinity();
      REQUIRE(build->attention(a, q.data(), k.data(), v.data(), s.has_mask ? mask.data() : nullptr, out.data(), sums.data(), {}));
      double worst = 0;
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.heads; ++h)
          for (int64_t i = 0; i < s.rows; ++i) {
            std::vector<double> e(static_cast<size_t>(s.is_causal ? i + 1 : s.keys));
            double total = 0;
            for (size_t j = 0; j < e.size(); ++j) {
              double dot = 0;
              for (int64_t d = 0; d < s.width; ++d) dot += double(q[static_cast<size_t>(b * a.q[0] + h * a.q[1] + i * a.q[2] + d)]) * k[static_cast<size_t>(b * a.k[0] + h * a.k[1] + static_cast<int64_t>(j) * a.k[2] + d)];
              e[j] = std::exp(dot * double(a.scale) + (s.has_mask ? double(mask[static_cast<size_t>((b * s.rows + i) * s.keys) + j]) : 0));
              total += e[j];
            }
            worst = std::max(worst, std::abs(std::log(total) - double(sums[static_cast<size_t>((b * s.heads + h) * s.rows + i)])));
            for (int64_t d = 0; d < s.width; ++d) {
              double exact = 0;
              for (size_t j = 0; j < e.size(); ++j) exact += e[j] / total * v[static_cast<size_t>(b * a.v[0] + h * a.v[1] + static_cast<int64_t>(j) * a.v[2] + d)];
              worst = std::max(worst, std::abs(exact - double(out[static_cast<size_t>(b * a.out[0] + h * a.out[1] + i * a.out[2] + d)])));
            }
          }
      CHECK(worst < 5e-6);
      std::vector<float> nothing(mask.size(), -std::numeric_limits<float>::infinity());
      CHECK_FALSE(build->attention(a, q.data(), k.data(), v.data(), nothing.data(), out.data(), sums.data(), {}));
    }
}
