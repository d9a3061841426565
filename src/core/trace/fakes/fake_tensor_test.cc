#include "core/trace/fake_tensor.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

using namespace cutaway;

namespace {
at::Tensor fake(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat, c10::Device device = at::kCPU) {
  return trace::make_fake(at::empty(sizes, at::TensorOptions().dtype(dtype).device(at::kMeta)), device);
}
// Not is_alias_of, which also compares addresses of data.
bool share_storage(const at::Tensor& a, const at::Tensor& b) { return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl(); }
}  // namespace

TEST_CASE("a fake tensor has metadata and no data") {
  auto x = fake({4, 8});
  CHECK(trace::is_fake(x));
  CHECK_FALSE(trace::is_fake(at::ones({1})));
  CHECK_FALSE(trace::is_fake(at::Tensor()));
  CHECK((x.device() == at::kCPU));
  CHECK((x.sizes() == at::IntArrayRef({4, 8})));
  CHECK_THROWS_WITH(x.data_ptr(), doctest::Contains("a fake tensor has no data"));
  auto like = at::ones({6, 4}).t().slice(0, 1, 3).set_requires_grad(true);
  auto y = trace::make_fake(like);
  CHECK((y.strides() == like.strides()));
  CHECK(y.storage_offset() == like.storage_offset());
  CHECK(y.requires_grad());
  CHECK(y.is_leaf());
}

TEST_CASE("memory is never taken") {
  trace::FakeMode mode;
  auto a = fake({1 << 20, 1 << 20}), b = fake({1 << 20, 1 << 20});   // 4 TiB each
  auto c = at::mm(a, b).add_(1);
  CHECK((c.sizes() == a.sizes()));
  CHECK(trace::is_fake(at::zeros({1 << 20, 1 << 20})));
}

TEST_CASE("products refuse factors of two dtypes, in the words of the kernels") {
  const auto said = [](auto&& f) {
    try {
      f();
    } catch (const c10::Error& e) {
      return std::string(e.what_without_backtrace());
    }
    return std::string();
  };
  const at::Tensor real = at::ones({2, 2}), twice = at::ones({2, 2}, at::kDouble);
  trace::FakeMode mode;
  auto a = trace::make_fake(real), b = trace::make_fake(twice);
  CHECK(said([&] { at::mm(a, b); }) == "expected m1 and m2 to have the same dtype, but got: float != double");
  CHECK(said([&] { at::addmm(a, a, b); }) == "self and mat2 must have the same dtype, but got Float and Double");
  CHECK(said([&] { at::bmm(a.unsqueeze(0), b.unsqueeze(0)); }) == "expected scalar type Float but found Double");
  CHECK(said([&] { at::mm(a, a); }).empty());
}

TEST_CASE("fakes of tensors that share a storage share one") {
  auto base = at::ones({8});
  auto fakes = trace::make_fakes({base, base.view({2, 4}), base, at::Tensor()});
  CHECK(share_storage(fakes[0], fakes[1]));
  CHECK(fakes[0].is_same(fakes[2]));
  CHECK_FALSE(fakes[3].defined());
}

TEST_CASE("views, in-place and out variants, lists and factories") {
  trace::FakeMode mode;
  auto x = fake({4, 8}), w = fake({8, 16});
  auto y = at::mm(x, w);
  auto v = y.view({-1});
  CHECK(share_storage(v, y));
  v.add_(1);
  CHECK(y._version() == 1);
  auto r = x.clone();
  r.resize_({2});
  CHECK((r.sizes() == at::IntArrayRef({2})));
  auto t = x.clone();
  t.t_();
  CHECK((t.sizes() == at::IntArrayRef({8, 4})));
  auto out = at::empty_like(x);
  CHECK(at::add_out(out, x, x).is_same(out));
  CHECK((at::cat({x, x}).sizes() == at::IntArrayRef({8, 8})));
  CHECK((x.index({fake({3}, at::kLong)}).sizes() == at::IntArrayRef({3, 8})));
  const auto parts = x.split(2);
  CHECK(parts.size() == 2);
  CHECK(parts[1].storage_offset() == 16);
  CHECK(share_storage(parts[1], x));
  CHECK((at::_foreach_add({x, x}, 1.0)[1].sizes() == x.sizes()));
  CHECK(trace::is_fake(at::arange(5)));
  CHECK(trace::is_fake(x.new_zeros({3})));
  CHECK((x.to(at::kHalf).scalar_type() == at::kHalf));
  CHECK(((x + at::scalar_tensor(2.0)).scalar_type() == at::kFloat));
  auto chunks = fake({6, 4}).unbind(0);
  CHECK(chunks.size() == 6);
}

TEST_CASE("the memo gives what inference gave, and fresh tensors each time") {
  trace::FakeMode mode;
  auto x = fake({4, 8});
  const auto before = trace::shape_counters();
  auto a = at::gelu(x), b = at::gelu(x);
  CHECK(trace::shape_counters().memo_hits > before.memo_hits);
  CHECK_FALSE(share_storage(a, b));
  CHECK((a.strides() == b.strides()));
  CHECK(at::gelu(fake({4, 9})).size(1) == 9);
  auto half = at::mul(fake({3}, at::kHalf), 2.5), whole = at::mul(fake({3}, at::kLong), 2.5);   // the wrapped number decides
  CHECK((half.scalar_type() == at::kHalf));
  CHECK((whole.scalar_type() == at::kFloat));
  CHECK((at::mul(fake({3}, at::kHalf), fake({}, at::kDouble)).scalar_type() == at::kHalf));
  CHECK((at::mul(fake({3}, at::kLong), fake({}, at::kDouble)).scalar_type() == at::kDouble));
}

TEST_CASE("autograd, functionalization, autocast and inference mode") {
  trace::FakeMode mode;
  auto x = fake({4, 8});
  auto p = fake({8, 16}).set_requires_grad(true);
  at::mm(x, p).tanh().sum().backward();
  at::mm(x, p).sum().backward();
  CHECK(trace::is_fake(p.grad()));
  CHECK((p.grad().sizes() == p.sizes()));
  auto h = at::mm(x, p);
  h.view({-1}).mul_(2);
  CHECK((torch::autograd::grad({h.pow(2).sum()}, {p})[0].sizes() == p.sizes()));
  {
    c10::InferenceMode inference;
    auto y = at::linear(x, fake({3, 8}));
    CHECK(y.is_inference());
    CHECK_FALSE(x.view({-1}).is_inference());
  }
  at::autocast::set_autocast_enabled(at::kCPU, true);
  auto low = at::mm(x, p);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  CHECK((low.scalar_type() == at::kBFloat16));
  auto y = x.clone();
  y.set_data(p.detach());
  CHECK((y.sizes() == p.sizes()));
}

TEST_CASE("operators that depend on data are refused by name") {
  trace::FakeMode mode;
  auto x = fake({4});
  CHECK_THROWS_AS((void)x.sum().item(), trace::DataDependentError);
  CHECK_THROWS_WITH_AS((void)x.nonzero(), doctest::Contains("aten::nonzero"), trace::DataDependentError);
  CHECK_THROWS_WITH_AS((void)x.index({x > 0}), doctest::Contains("aten::index.Tensor"), trace::DataDependentError);
  CHECK_THROWS_WITH_AS((void)at::_unique2(x), doctest::Contains("aten::_unique2"), trace::DataDependentError);
  CHECK_THROWS_WITH_AS((void)at::masked_select(x, x > 0), doctest::Contains("aten::masked_select"), trace::DataDependentError);
  CHECK_THROWS_WITH_AS((void)at::equal(x, x), doctest::Contains("aten::equal"), trace::DataDependentError);
}

TEST_CASE("real tensors are constants, and are not written to") {
  trace::FakeMode mode;
  at::Tensor real;
  {
    c10::impl::ExcludeDispatchKeyGuard off(c10::DispatchKey::Fake);
    real = at::ones({4});
  }
  auto y = fake({4}) + real;
  CHECK(trace::is_fake(y));
  CHECK(real.add_(y.detach()).is_same(real));
  CHECK(real.const_data_ptr<float>()[0] == 1.0f);
  CHECK(real.select(0, 0).defined());
}

TEST_CASE("layouts that cannot be traced are refused by name") {
  CHECK_THROWS_WITH_AS((void)trace::make_fake(at::ones({2, 2}).to_sparse()), doctest::Contains("layout Sparse"), c10::NotImplementedError);
  trace::FakeMode mode;
  CHECK_THROWS_AS((void)fake({2, 2}).to_sparse(), c10::NotImplementedError);
}

TEST_CASE("a device that this build lacks: forward works, backward is refused by name") {
  if (at::hasCUDA()) return;
  trace::FakeMode mode;
  auto x = fake({4, 8}, at::kFloat, c10::Device(at::kCUDA, 0)), p = fake({8, 2}, at::kFloat, c10::Device(at::kCUDA, 0)).set_requires_grad(true);
  auto y = at::layer_norm(at::mm(x, p), {2}).sum();
  CHECK((y.device() == c10::Device(at::kCUDA, 0)));
  CHECK(y.requires_grad());
  CHECK_THROWS_WITH_AS(trace::require_backward_device({y}), doctest::Contains("backward on fake tensors of cuda:0 is refused"), c10::NotImplementedError);
  CHECK_THROWS_AS(y.backward(), c10::Error);
  CHECK_THROWS_WITH((void)at::add(x, fake({4, 8})), doctest::Contains("cuda:0 and cpu"));
  CHECK((at::zeros({2}, at::TensorOptions().device(at::kCUDA)).device() == c10::Device(at::kCUDA, 0)));
}

TEST_CASE("an operator without a rule is refused by name") {
  trace::FakeMode mode;
  CHECK((at::histc(fake({100}), 7).sizes() == at::IntArrayRef({7})));   // few elements: its shape comes from a run on zeros
  CHECK_THROWS_WITH(at::histc(fake({1 << 26}), 7), doctest::Contains("aten::histc"));
}

TEST_CASE("a fake of other sizes lies in memory as its model does") {
  auto strides = [](const at::Tensor& like, at::IntArrayRef sizes) { return trace::make_fake(like, sizes).strides().vec(); };
  using V = std::vector<int64_t>;
  CHECK(strides(at::ones({2, 3, 4}), {5, 3, 4}) == V{12, 4, 1});
  CHECK(strides(at::ones({2, 3}).t(), {3, 7}) == V{1, 3});
  CHECK(strides(at::ones({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast), {2, 3, 8, 5}) == V{120, 1, 15, 3});
  CHECK(strides(at::ones({1, 4}).expand({3, 4}), {6, 4}) == V{0, 1});
  CHECK_THROWS_WITH(strides(at::ones({2, 6}).slice(1, 0, 6, 2), {4, 3}), doctest::Contains("do not lie one after the other"));
}

TEST_CASE("views are those of eager, and share the storage") {
  auto base = at::arange(24).view({2, 3, 4});
  auto f = trace::make_fake(base);
  auto same = [&](auto&& view) {
    const auto e = view(base), r = view(f);
    CHECK((e.sizes() == r.sizes()));
    CHECK((e.strides() == r.strides()));
    CHECK(e.storage_offset() == r.storage_offset());
    CHECK(share_storage(r, f));
  };
  same([](const at::Tensor& t) { return t.transpose(-1, 0); });
  same([](const at::Tensor& t) { return t.permute({2, 0, -2}); });
  same([](const at::Tensor& t) { return t.slice(1, -2, INT64_MAX, 2); });
  same([](const at::Tensor& t) { return t.slice(2, 3, 1); });
  same([](const at::Tensor& t) { return t.select(1, -1).unsqueeze(0).expand({5, -1, -1}); });
  same([](const at::Tensor& t) { return t.unsqueeze(-1).squeeze(3).view({6, -1}); });
  same([](const at::Tensor& t) { return t.split(2, 1)[1]; });
  same([](const at::Tensor& t) { return t.unbind(2)[3]; });
  same([](const at::Tensor& t) { return t.as_strided({2, 2}, {1, 5}, 3); });
  CHECK_THROWS_WITH(f.view({5, 5}), doctest::Contains("shape '[5, 5]' is invalid"));
  CHECK_THROWS_WITH(f.select(1, 3), doctest::Contains("index 3 out of range"));
  CHECK_THROWS_WITH(f.expand({2, 4, 4}), doctest::Contains("must match the existing size"));
}
