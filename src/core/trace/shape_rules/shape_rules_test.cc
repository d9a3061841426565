// Every rule against eager, forward and backward, in a process without Python: sizes, strides and dtypes must be the same.
#include "core/trace/shape_rules/shape_rules.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <sstream>

#include "core/trace/fake_tensor.h"

using namespace cutaway;
using at::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

std::string describe(const Tensors& tensors) {
  std::ostringstream out;
  for (const auto& t : tensors) {
    if (!t.defined()) { out << "undefined; "; continue; }
    out << t.scalar_type() << t.sizes();
    if (t.numel() > 1) out << t.strides();
    out << "; ";
  }
  return out.str();
}

// Results, and gradients of the floating inputs that require one.
Tensors run(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  Tensors results = f(inputs), leaves, roots, ones;
  for (const auto& t : inputs)
    if (t.requires_grad()) leaves.push_back(t);
  for (const auto& r : results)
    if (r.defined() && r.requires_grad()) { roots.push_back(r); ones.push_back(at::ones_like(r)); }
  if (!roots.empty()) {
    auto grads = torch::autograd::grad(roots, leaves, ones, {}, false, /*allow_unused=*/true);
    results.insert(results.end(), grads.begin(), grads.end());
  }
  return results;
}

void same_as_eager(const char* name, const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  INFO(std::string(name));
  const auto expected = describe(run(f, inputs));
  const auto fakes = trace::make_fakes(inputs);
  trace::FakeMode mode;
  for (int i = 0; i < 2; ++i) {   // the second time by the memo
    const auto results = run(f, fakes);
    CHECK(describe(results) == expected);
    for (const auto& r : results) CHECK((!r.defined() || trace::is_fake(r)));
  }
}

Tensor leaf(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) { return at::randn(sizes, at::TensorOptions().dtype(at::kFloat)).to(dtype).set_requires_grad(true); }
Tensor images(at::ScalarType dtype = at::kFloat) { return at::randn({2, 4, 8, 8}).to(dtype).contiguous(at::MemoryFormat::ChannelsLast).set_requires_grad(true); }

}  // namespace

TEST_CASE("rules: pointwise, masks and copies") {
  same_as_eager("relu", [](const Tensors& t) { return Tensors{at::relu(t[0])}; }, {leaf({3, 4}).t()});
  same_as_eager("where", [](const Tensors& t) { return Tensors{at::where(t[0] > 0, t[0], t[1])}; }, {leaf({3, 4}), leaf({4})});
  same_as_eager("where, mixed dtypes", [](const Tensors& t) { return Tensors{at::where(t[1] > 0, t[0], t[1])}; }, {at::ones({4}, at::kInt), at::ones({3, 4}, at::kHalf).t().contiguous().t()});
  same_as_eager("masked_fill", [](const Tensors& t) { return Tensors{at::masked_fill(t[0], t[1], 0.0)}; }, {leaf({3, 4}).t(), at::ones({4, 1}, at::kBool)});
  same_as_eager("clone and to", [](const Tensors& t) {
    return Tensors{t[0].t().clone(), t[0].expand({2, 3, 4}).clone(), t[0].to(at::kDouble), t[0].t().to(at::kBFloat16), t[0].t().clone(at::MemoryFormat::Contiguous)};
  }, {leaf({3, 4})});
  same_as_eager("arithmetic with numbers", [](const Tensors& t) { return Tensors{t[0] + 1, t[0] - 1.5, t[0] * 2, t[0] / 3, 1 - t[0], t[0].remainder(2), t[0].abs(), t[0].isnan()}; }, {at::ones({3}, at::kLong)});
  same_as_eager("dropout", [](const Tensors& t) { return Tensors{at::dropout(t[0], 0.5, true), std::get<0>(at::native_dropout(t[0], 0.5, true))}; }, {leaf({3, 4}).t()});
}

TEST_CASE("rules: reductions") {
  same_as_eager("var and std", [](const Tensors& t) {
    auto [v, m] = at::var_mean(t[0], at::IntArrayRef{0}, 1, true);
    return Tensors{at::var(t[0]), at::std(t[0], at::IntArrayRef{1}, std::optional<at::Scalar>(0), false), v, m};
  }, {leaf({3, 4})});
  same_as_eager("max and min", [](const Tensors& t) {
    auto [v, i] = at::max(t[0], 1);
    auto [w, j] = at::min(t[0], 0, true);
    return Tensors{t[0].detach().max(), t[0].detach().min(), v, i, w, j};   // the backward of max() reads a value
  }, {leaf({3, 4})});
  same_as_eager("sum and mean", [](const Tensors& t) { return Tensors{t[0].sum(), t[0].mean(), t[0].sum(at::IntArrayRef{0, 2}), t[0].mean(at::IntArrayRef{-1}, true)}; }, {leaf({3, 4, 5})});
  same_as_eager("sum of integers", [](const Tensors& t) { return Tensors{t[0].sum(), t[0].sum(at::kFloat)}; }, {at::ones({3}, at::kInt)});
}

TEST_CASE("rules: indexing") {
  const auto index = at::tensor({0, 2, 1}, at::kLong);
  same_as_eager("index_select", [&](const Tensors& t) { return Tensors{at::index_select(t[0], 1, t[1])}; }, {leaf({4, 3}), index});
  same_as_eager("embedding", [](const Tensors& t) { return Tensors{at::embedding(t[0], t[1])}; }, {leaf({5, 3}), at::zeros({2, 7}, at::kLong)});
  same_as_eager("index_put", [](const Tensors& t) { return Tensors{at::index_put(t[0], {t[1]}, t[2])}; }, {leaf({5, 3}), index, leaf({3, 3})});
  same_as_eager("slice and select", [](const Tensors& t) { return Tensors{t[0].slice(1, 1, 3), t[0].select(0, 1)}; }, {leaf({4, 4})});
  same_as_eager("gather", [](const Tensors& t) { return Tensors{at::gather(t[0], 1, t[1])}; }, {leaf({3, 4}), at::zeros({3, 2}, at::kLong)});
}

TEST_CASE("rules: factories") {
  same_as_eager("factories", [](const Tensors& t) {
    return Tensors{at::zeros({2, 3}), at::full({2}, 3), at::full({2}, 1.5), at::full({2}, true), at::arange(7), at::arange(1.0, 3.0, 0.3), at::arange(5, 0, -2), at::ones_like(t[0]),
                   at::full_like(t[0], 2, at::TensorOptions().dtype(at::kInt)), t[0].new_zeros({2, 2}), at::randn_like(t[0]), at::scalar_tensor(2), at::arange(3, at::TensorOptions().dtype(at::kInt))};
  }, {at::ones({3, 4}).t()});
}

TEST_CASE("rules: normalization") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    same_as_eager("layer_norm", [](const Tensors& t) { return Tensors{at::layer_norm(t[0], {4}, t[1], t[2])}; }, {leaf({2, 3, 4}, dtype), leaf({4}, dtype), leaf({4}, dtype)});
    same_as_eager("layer_norm of a transposed input", [](const Tensors& t) { return Tensors{at::layer_norm(t[0].transpose(0, 1), {4}, t[1], t[2])}; }, {leaf({2, 3, 4}, dtype), leaf({4}, dtype), leaf({4}, dtype)});
    same_as_eager("group_norm", [](const Tensors& t) { return Tensors{at::group_norm(t[0], 2, t[1], t[2])}; }, {leaf({2, 4, 3, 3}, dtype), leaf({4}, dtype), leaf({4}, dtype)});
    same_as_eager("group_norm, channels last", [](const Tensors& t) { return Tensors{at::group_norm(t[0], 2, t[1], t[2])}; }, {images(dtype), leaf({4}, dtype), leaf({4}, dtype)});
  }
  same_as_eager("layer_norm, float parameters", [](const Tensors& t) { return Tensors{at::layer_norm(t[0], {4}, t[1], t[2])}; }, {leaf({2, 4}, at::kBFloat16), leaf({4}), leaf({4})});
  for (const bool training : {true, false})
    for (const auto& x : {leaf({2, 4, 8, 8}), images(), leaf({3, 4})})
      same_as_eager("batch_norm", [training](const Tensors& t) { return Tensors{at::batch_norm(t[0], t[1], t[2], t[3], t[4], training, 0.1, 1e-5, false)}; },
                    {x, leaf({4}), leaf({4}), at::zeros({4}), at::ones({4})});
  same_as_eager("native_batch_norm", [](const Tensors& t) {
    auto [a, b, c] = at::native_batch_norm(t[0], t[1], t[2], {}, {}, true, 0.1, 1e-5);
    return Tensors{a, b, c};
  }, {leaf({2, 4, 8, 8}), leaf({4}), leaf({4})});
}

TEST_CASE("rules: convolution and pooling") {
  const auto conv = [](const Tensors& t) { return Tensors{at::conv2d(t[0], t[1], t[2], 2, 1)}; };
  same_as_eager("conv2d", conv, {leaf({2, 4, 8, 8}), leaf({6, 4, 3, 3}), leaf({6})});
  same_as_eager("conv2d, channels last", conv, {images(), leaf({6, 4, 3, 3}), leaf({6})});
  same_as_eager("conv2d, bfloat16", conv, {images(at::kBFloat16), leaf({6, 4, 3, 3}, at::kBFloat16), leaf({6}, at::kBFloat16)});
  same_as_eager("conv2d, unbatched", conv, {leaf({4, 8, 8}), leaf({6, 4, 3, 3}), leaf({6})});
  same_as_eager("conv1d of a transposed input", [](const Tensors& t) { return Tensors{at::conv1d(t[0].transpose(1, 2), t[1])}; }, {leaf({2, 9, 4}), leaf({6, 4, 3})});
  same_as_eager("conv3d", [](const Tensors& t) { return Tensors{at::conv3d(t[0], t[1])}; }, {leaf({1, 2, 5, 5, 5}), leaf({3, 2, 2, 2, 2})});
  same_as_eager("depthwise", [](const Tensors& t) { return Tensors{at::conv2d(t[0], t[1], {}, 1, 1, 1, 4)}; }, {leaf({2, 4, 8, 8}), leaf({4, 1, 3, 3})});
  same_as_eager("conv_transpose2d", [](const Tensors& t) { return Tensors{at::conv_transpose2d(t[0], t[1], {}, 2, 1, 1)}; }, {leaf({2, 4, 8, 8}), leaf({4, 6, 3, 3})});
  same_as_eager("pooling", [](const Tensors& t) { return Tensors{at::adaptive_avg_pool2d(t[0], {2, 2}), at::max_pool2d(t[0], 2), at::avg_pool2d(t[0], 3)}; }, {leaf({2, 4, 8, 8})});
  same_as_eager("pooling, channels last", [](const Tensors& t) { return Tensors{at::adaptive_avg_pool2d(t[0], {2, 2}), at::max_pool2d(t[0], 2)}; }, {images()});
}

TEST_CASE("rules: attention") {
  const auto attention = [](bool causal) {
    return [causal](const Tensors& t) { return Tensors{at::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.0, causal)}; };
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const bool causal : {false, true})
      same_as_eager("attention", attention(causal), {leaf({2, 4, 6, 8}, dtype), leaf({2, 4, 6, 8}, dtype), leaf({2, 4, 6, 8}, dtype)});
  same_as_eager("attention with a mask", [](const Tensors& t) { return Tensors{at::scaled_dot_product_attention(t[0], t[1], t[2], t[3])}; },
                {leaf({2, 4, 6, 8}), leaf({2, 4, 5, 8}), leaf({2, 4, 5, 8}), at::zeros({2, 1, 6, 5})});
  same_as_eager("attention over transposed heads", [](const Tensors& t) { return Tensors{at::scaled_dot_product_attention(t[0].transpose(1, 2), t[1].transpose(1, 2), t[2].transpose(1, 2))}; },
                {leaf({2, 6, 4, 8}), leaf({2, 6, 4, 8}), leaf({2, 6, 4, 8})});
}

TEST_CASE("rules raise where eager raises") {
  const Tensors wrong = {at::ones({2, 3}), at::ones({4}), at::ones({4}), at::ones({2, 3, 4, 4}), at::ones({2, 5, 3, 3})};
  const auto fakes = trace::make_fakes(wrong);
  for (const auto& [name, f] : std::vector<std::pair<const char*, std::function<Tensor(const Tensors&)>>>{
           {"layer_norm", [](const Tensors& t) { return at::layer_norm(t[0], {4}, t[1], t[2]); }},
           {"conv2d", [](const Tensors& t) { return at::conv2d(t[3], t[4]); }},
           {"where", [](const Tensors& t) { return at::where(t[0] > 0, t[0], t[1]); }},
           {"mm", [](const Tensors& t) { return at::mm(t[0], t[0]); }},
           {"copy_", [](const Tensors& t) { return t[0].clone().copy_(t[1]); }},
           {"embedding", [](const Tensors& t) { return at::embedding(t[1], at::zeros({2}, at::kLong)); }}}) {
    INFO(std::string(name));
    CHECK_THROWS_AS((void)f(wrong), c10::Error);
    trace::FakeMode mode;
    CHECK_THROWS_AS((void)f(fakes), c10::Error);
  }
}
