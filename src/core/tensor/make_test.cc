#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/tensor_store.h"

using namespace cutaway;
using tensor::Range;

namespace {

bundle::TensorRecord record(ir::DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0) {
  bundle::TensorRecord r;
  r.dtype = dtype;
  r.sizes = std::move(sizes);
  r.strides = std::move(strides);
  r.storage_offset = offset;
  return r;
}

at::Tensor random(const bundle::TensorRecord& r, uint64_t seed, std::optional<Range> range = std::nullopt) {
  auto t = tensor::rand_strided(r, seed, range);
  REQUIRE_MESSAGE(t.ok(), t.error().text());
  return *t;
}

bool bits_equal(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().nbytes() == b.storage().nbytes() && std::memcmp(a.storage().data(), b.storage().data(), a.storage().nbytes()) == 0;
}

}  // namespace

TEST_CASE("random data has the metadata it was asked for") {
  const at::Tensor t = random(record(ir::DType::f32, {3, 4}, {1, 5}, 2), 7);
  CHECK(t.sizes() == at::IntArrayRef({3, 4}));
  CHECK(t.strides() == at::IntArrayRef({1, 5}));
  CHECK(t.storage_offset() == 2);
  CHECK(t.storage().nbytes() == (2 + 2 + 15 + 1) * 4);
}

TEST_CASE("random data is a function of the seed and leaves torch's random state alone") {
  at::manual_seed(1);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(1);
  const auto r = record(ir::DType::f32, {1000}, {1});
  const at::Tensor a = random(r, 5), b = random(r, 5), c = random(r, 6);
  CHECK(at::equal(at::rand({4}), expected));
  CHECK(bits_equal(a, b));
  CHECK(!bits_equal(a, c));
}

TEST_CASE("the numbers of a seed are fixed: bundles that name one must give the same data for ever") {
  const at::Tensor t = random(record(ir::DType::f64, {3}, {1}), 42);
  const at::Tensor i = random(record(ir::DType::i64, {4}, {1}), 42, Range(-3, 4));
  INFO(t[0].item<double>(), " ", t[1].item<double>(), " ", t[2].item<double>());
  INFO(i[0].item<int64_t>(), " ", i[1].item<int64_t>(), " ", i[2].item<int64_t>(), " ", i[3].item<int64_t>());
  CHECK(t[0].item<double>() == 0x1.4315500000000p-1);
  CHECK(t[1].item<double>() == -0x1.3d91c80000000p+0);
  CHECK(t[2].item<double>() == -0x1.378f400000000p-3);
  CHECK(at::equal(i, at::tensor({0, 1, 3, -1}, at::kLong)));
}

TEST_CASE("random floats look normal") {
  const at::Tensor t = random(record(ir::DType::f64, {200000}, {1}), 3);
  CHECK(std::abs(t.mean().item<double>()) < 0.01);
  CHECK(std::abs(t.var().item<double>() - 1) < 0.02);
  CHECK(std::abs((t.abs() < 0.6744898).to(at::kDouble).mean().item<double>() - 0.5) < 0.01);   // the quartiles
  CHECK(std::abs((t > 1.959964).to(at::kDouble).mean().item<double>() - 0.025) < 0.003);
  const at::Tensor next = t.narrow(0, 1, 199999) * t.narrow(0, 0, 199999);
  CHECK(std::abs(next.mean().item<double>()) < 0.01);   // neighbours do not depend on each other
}

TEST_CASE("every dtype but the quantized ones has random data") {
  for (int d = 0; d < ir::kDTypeCount; ++d) {
    const auto dtype = static_cast<ir::DType>(d);
    CAPTURE(std::string(ir::dtype_name(dtype)));
    auto t = tensor::rand_strided(record(dtype, {4, 8}, {8, 1}), 9);
    CHECK(t.ok() == !ir::is_quantized(dtype));
    if (t.ok()) CHECK((t->scalar_type() == tensor::to_aten(dtype)));
  }
}

TEST_CASE("integers stay in their range, and a range that does not fit is refused") {
  const at::Tensor t = random(record(ir::DType::i16, {1000}, {1}), 1, Range(-2, 3));
  CHECK(t.min().item<int64_t>() == -2);
  CHECK(t.max().item<int64_t>() == 2);
  CHECK(!tensor::rand_strided(record(ir::DType::u8, {4}, {1}), 1, Range(0, 300)).ok());
  CHECK(!tensor::rand_strided(record(ir::DType::i64, {4}, {1}), 1, Range(5, 5)).ok());
  CHECK(at::equal(random(record(ir::DType::f32, {50}, {1}), 1, Range(7, 8)), at::full({50}, 7.0)));
}

TEST_CASE("metadata that fits no memory is refused in words") {
  CHECK(!tensor::rand_strided(record(ir::DType::f32, {int64_t{1} << 40, int64_t{1} << 40}, {int64_t{1} << 40, 1}), 1).ok());
  CHECK(!tensor::rand_strided(record(ir::DType::f32, {4}, {-1}), 1).ok());
}

TEST_CASE("a clone keeps sharing, overlaps, strides, gradness, leafness and gradients") {
  const at::Tensor base = at::randn({4, 5});
  const at::Tensor view = base.t().narrow(0, 1, 3);
  const at::Tensor wide = base.narrow(1, 0, 1).expand({4, 7});
  at::Tensor leaf = at::randn({3}).requires_grad_();
  leaf.mutable_grad() = at::ones({3});
  const at::Tensor inner = leaf * 2;
  const std::vector<c10::IValue> values = {base, view, wide, c10::ivalue::Tuple::create({base, 3}), leaf, inner, std::vector<at::Tensor>{view}};
  const auto copies = tensor::clone_keeping_aliases(values);
  const at::Tensor b = copies[0].toTensor(), v = copies[1].toTensor(), w = copies[2].toTensor();
  CHECK(b.storage().unsafeGetStorageImpl() != base.storage().unsafeGetStorageImpl());
  CHECK(v.is_alias_of(b));
  CHECK(w.is_alias_of(b));
  CHECK(v.strides() == view.strides());
  CHECK(w.strides() == wide.strides());
  CHECK(at::equal(v, view));
  b.fill_(3);
  CHECK(at::equal(w, at::full({4, 7}, 3.0)));
  CHECK(copies[3].toTupleRef().elements()[0].toTensor().is_same(b));
  CHECK(copies[3].toTupleRef().elements()[1].toInt() == 3);
  CHECK(copies[6].toTensorVector()[0].is_same(v));
  const at::Tensor l = copies[4].toTensor(), n = copies[5].toTensor();
  CHECK(l.requires_grad());
  CHECK(l.is_leaf());
  CHECK(at::equal(l.grad(), at::ones({3})));
  CHECK(!l.grad().is_alias_of(leaf.grad()));
  CHECK(n.requires_grad());
  CHECK(!n.is_leaf());
}

TEST_CASE("a clone that was no leaf can be changed in place and stops gradients") {
  at::Tensor leaf = at::randn({3}).requires_grad_();
  const auto copies = tensor::clone_keeping_aliases({leaf * 2});
  at::Tensor t = copies[0].toTensor();
  t.retain_grad();
  at::Tensor other = at::ones({3}).requires_grad_();
  (t * other).sum().backward();
  CHECK(t.grad().defined());
  CHECK(other.grad().defined());
  CHECK(!leaf.grad().defined());
  at::Tensor again = tensor::clone_keeping_aliases({leaf * 2})[0].toTensor();
  again.mul_(2);   // torch refuses this for a leaf that requires a gradient
  CHECK(again.requires_grad());
}

TEST_CASE("what has no storage of its own is cloned one by one") {
  const at::Tensor sparse = at::eye(3).to_sparse();
  const at::Tensor copy = tensor::clone_keeping_aliases({sparse})[0].toTensor();
  CHECK(copy.is_sparse());
  CHECK(at::equal(copy.to_dense(), at::eye(3)));
  const at::Tensor meta = at::empty({2, 3}, at::device(at::kMeta));
  CHECK(tensor::clone_keeping_aliases({meta})[0].toTensor().is_meta());
}

TEST_CASE("fp64 casts keep views, offsets and complex pairs together; integers stay") {
  const at::Tensor base = at::randn({6, 4});
  const at::Tensor view = base.narrow(0, 2, 3).t();
  const at::Tensor complex = at::view_as_complex(base.view({6, 2, 2})).conj();
  const at::Tensor ints = at::arange(3);
  const auto cast = tensor::cast_to_fp64({base, view, complex, ints, 2.5, base.to(at::kHalf)});
  const at::Tensor b = cast[0].toTensor(), v = cast[1].toTensor(), c = cast[2].toTensor();
  CHECK((b.scalar_type() == at::kDouble));
  CHECK(v.is_alias_of(b));
  CHECK(v.strides() == view.strides());
  CHECK(v.storage_offset() == view.storage_offset());
  CHECK(at::equal(v, view.to(at::kDouble)));
  CHECK((c.scalar_type() == at::kComplexDouble));
  CHECK(c.is_conj());
  CHECK(c.is_alias_of(b));
  CHECK(at::equal(c.resolve_conj(), complex.resolve_conj().to(at::kComplexDouble)));
  CHECK(cast[3].toTensor().is_same(ints));
  CHECK(cast[4].toDouble() == 2.5);
  CHECK((cast[5].toTensor().scalar_type() == at::kDouble));
}
