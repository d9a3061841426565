#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/save_bundle.h"
#include "core/tensor/tensor_store.h"
#include "core/ir/text.h"

using namespace cutaway;
namespace fs = std::filesystem;

namespace {

struct Directory {
  fs::path path;
  Directory() {
    std::string name = (fs::temp_directory_path() / "cutaway-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
};
store::Store open(const fs::path& path) {
  auto s = store::Store::open(path, store::Store::Open::create, store::Durability::fast);
  REQUIRE_MESSAGE(s.ok(), s.error().text());
  return std::move(s).value();
}
template <class T> T take(base::Result<T> r) {
  REQUIRE_MESSAGE(r.ok(), r.error().text());
  return std::move(r).value();
}
at::Tensor round_trip(store::Store& store, const at::Tensor& t) { return take(tensor::TensorReader(store).read(take(tensor::write_tensor(store, t)))); }

}  // namespace

TEST_CASE("a tensor comes back with its view, its bits and its autograd state") {
  Directory d;
  store::Store store = open(d.path);
  const at::Tensor base = at::randn({4, 6});
  for (const at::Tensor& t : {base, base.t(), base.narrow(1, 2, 3), base.narrow(0, 0, 1).expand({5, 6}), at::empty({0, 3}), at::tensor(2.5), base.as_strided({3, 3}, {1, 1}, 2)}) {
    const at::Tensor back = round_trip(store, t);
    CHECK(back.sizes() == t.sizes());
    CHECK(back.strides() == t.strides());
    CHECK(back.storage_offset() == t.storage_offset());
    CHECK(at::equal(back, t));
  }
  const at::Tensor complex = at::view_as_complex(at::randn({3, 2})).conj();
  CHECK(round_trip(store, complex).is_conj());
  CHECK(at::equal(round_trip(store, complex).resolve_conj(), complex.resolve_conj()));
  const at::Tensor neg = at::imag(complex);
  REQUIRE(neg.is_neg());
  CHECK(round_trip(store, neg).is_neg());
  CHECK(at::equal(round_trip(store, neg), neg));
  const at::Tensor leaf = at::randn({2}).requires_grad_();
  CHECK(round_trip(store, leaf).requires_grad());
  CHECK(round_trip(store, leaf).is_leaf());
  const at::Tensor inner = round_trip(store, leaf * 2);
  CHECK(inner.requires_grad());
  CHECK(!inner.is_leaf());
  inner.sum().backward();   // ends at the tensor, without an error
}

TEST_CASE("every dtype goes through the store bit for bit") {
  Directory d;
  store::Store store = open(d.path);
  for (int i = 0; i < ir::kDTypeCount; ++i) {
    const auto dtype = static_cast<ir::DType>(i);
    if (ir::is_quantized(dtype)) continue;
    CAPTURE(std::string(ir::dtype_name(dtype)));
    bundle::TensorRecord r;
    r.dtype = dtype;
    r.sizes = {3, 5};
    r.strides = {5, 1};
    const at::Tensor t = take(tensor::rand_strided(r, 11));
    const at::Tensor back = round_trip(store, t);
    CHECK((back.scalar_type() == t.scalar_type()));
    REQUIRE(back.storage().nbytes() == t.storage().nbytes());
    CHECK(std::memcmp(back.storage().data(), t.storage().data(), t.storage().nbytes()) == 0);
  }
}

TEST_CASE("what cannot be stored is refused by name") {
  Directory d;
  store::Store store = open(d.path);
  auto message = [&](const at::Tensor& t) {
    auto r = tensor::write_tensor(store, t);
    return r.ok() ? std::string("stored") : r.error().text();
  };
  CHECK(message(at::eye(3).to_sparse()).starts_with("a tensor of layout sparse (sparse_coo) cannot be stored"));
  CHECK(message(at::quantize_per_tensor(at::randn({3}), 0.1, 0, at::kQInt8)).starts_with("a quantized tensor (QInt8) cannot be stored"));
  CHECK(message(at::_nested_tensor_from_tensor_list({at::randn({2}), at::randn({3})})).starts_with("a nested tensor cannot be stored"));
  CHECK(message(at::empty({3}, at::device(at::kMeta))).starts_with("a meta tensor has no data"));
  CHECK(tensor::compute_tensor_metadata(at::empty({3}, at::device(at::kMeta))).ok());
  at::Tensor freed = at::randn({100});
  freed.storage().unsafeGetStorageImpl()->set_nbytes(4);
  CHECK(message(freed) == "a tensor of 400 bytes looks at a storage of 4\n   because: its memory was freed or resized after the tensor was made");
}

TEST_CASE("names keep sharing across puts, and equal contents do not start to share") {
  Directory d;
  store::Store store = open(d.path);
  tensor::NamedTensors names(store);
  const at::Tensor a = at::randn({4});
  take(names.put("run/a", a));
  take(names.put("run/b", a.narrow(0, 1, 2)));
  take(names.put("run/c", a.clone()));
  const auto back = take(names.get(std::vector<std::string>{"run/a", "run/b", "run/c"}));
  CHECK(back[0].is_alias_of(back[1]));
  CHECK(!back[0].is_alias_of(back[2]));
  CHECK(at::equal(back[0], back[2]));
  // "run/a" is put again with an equal storage: "run/b" still belongs to the first.
  take(names.put("run/a", a.clone()));
  const auto again = take(names.get(std::vector<std::string>{"run/a", "run/b"}));
  CHECK(!again[0].is_alias_of(again[1]));
  CHECK(take(store.list()).size() == 1);
}

TEST_CASE("recordings are compared by metadata, and by elements where digests differ") {
  Directory d;
  store::Store store = open(d.path);
  tensor::NamedTensors names(store);
  const at::Tensor x = at::arange(6, at::kFloat);
  at::Tensor y = x.clone();
  y[5] = -1;
  take(names.put("a/same", x));
  take(names.put("b/same", x.clone()));
  take(names.put("a/differs", x));
  take(names.put("b/differs", y));
  take(names.put("a/view", x.narrow(0, 0, 3)));
  take(names.put("b/view", y.narrow(0, 0, 3)));
  take(names.put("a/shape", x));
  take(names.put("b/shape", x.view({2, 3})));
  take(names.put("a/only", x));
  const auto found = take(tensor::compare_recordings(store, "a/", "b/"));
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "differs");
  CHECK(found[0].unequal_elements == 1);
  CHECK(found[0].elements == 6);
  CHECK(found[1].name == "only");
  CHECK(found[1].fields == std::vector<std::string>{"only in a/"});
  CHECK(found[2].name == "shape");
  CHECK(found[2].unequal_elements == -1);
  CHECK(found[3].name == "view");
  CHECK(found[3].unequal_elements == 0);   // the storages differ outside of the view
}

TEST_CASE("inputs are saved once a storage, and what does not fit is seeded within the range of its use") {
  Directory d;
  store::Store store = open(d.path);
  const auto graph = take(ir::parse("graph g(%w: f32[10, 4], %i: i64[100], %j: i64[100], %n: int) { %y: f32[100, 4] = aten.embedding(%w, %i)  return (%y) }"));
  const at::Tensor index = at::randint(0, 10, {100}, at::kLong);
  const at::Tensor other = at::randint(20, 25, {100}, at::kLong);
  const std::vector<c10::IValue> values = {at::randn({10, 4}), index, other, 7};
  auto refs = take(tensor::save_inputs(store, values, {.max_bytes = 200, .seed = 1}, &graph));
  CHECK(refs[0].kind == bundle::InputRef::Kind::data);
  CHECK(refs[1].kind == bundle::InputRef::Kind::seeded);
  CHECK(refs[1].range == tensor::Range(0, 10));
  CHECK(refs[1].reason == "its storage of 800 bytes did not fit into the limit of 200");
  CHECK(refs[2].range == tensor::Range(other.min().item<int64_t>(), other.max().item<int64_t>() + 1));
  CHECK(refs[3].kind == bundle::InputRef::Kind::literal);
  const auto loaded = take(tensor::load_inputs(refs, store));
  CHECK(at::equal(loaded[0].toTensor(), values[0].toTensor()));
  CHECK(loaded[1].toTensor().max().item<int64_t>() < 10);
  CHECK(loaded[3].toInt() == 7);
  CHECK(at::equal(take(tensor::load_inputs(refs, store))[1].toTensor(), loaded[1].toTensor()));
}

TEST_CASE("seeded and filled inputs share storages as their records say") {
  Directory d;
  store::Store store = open(d.path);
  const at::Tensor base = at::randn({8});
  auto refs = take(tensor::save_inputs(store, {base, base.narrow(0, 2, 3)}, {.max_bytes = 0}));
  const auto loaded = take(tensor::load_inputs(refs, store));
  CHECK(loaded[0].toTensor().is_alias_of(loaded[1].toTensor()));
  CHECK(at::equal(loaded[0].toTensor().narrow(0, 2, 3), loaded[1].toTensor()));
  refs[0].kind = refs[1].kind = bundle::InputRef::Kind::filled;
  refs[0].fill = refs[1].fill = 1.5;
  CHECK(at::equal(take(tensor::load_inputs(refs, store))[0].toTensor(), at::full({8}, 1.5)));
}

TEST_CASE("missing data is an error that names it, and random data only when asked") {
  Directory d;
  store::Store store = open(d.path);
  auto refs = take(tensor::save_inputs(store, {at::randn({10}), at::randn({5})}));
  const std::string hex = refs[1].tensor.storage.hex();
  fs::remove(d.path / "blobs" / hex.substr(0, 2) / hex);
  auto failed = tensor::load_inputs(refs, store);
  REQUIRE(!failed.ok());
  CHECK(failed.error().place == "input 1");
  CHECK(failed.error().text().find(refs[1].tensor.storage.short_hex()) != std::string::npos);
  CHECK(failed.error().hint.find("--random-inputs") != std::string::npos);
  CHECK(tensor::replace_missing_by_random(refs, store, 3) == 1);
  CHECK(refs[0].kind == bundle::InputRef::Kind::data);
  CHECK(refs[1].kind == bundle::InputRef::Kind::seeded);
  CHECK(take(tensor::load_inputs(refs, store))[1].toTensor().sizes() == at::IntArrayRef({5}));
}

TEST_CASE("literals go through the manifest's form and back") {
  const c10::IValue values[] = {c10::IValue(), c10::IValue(true), c10::IValue(int64_t{-3}), c10::IValue(0.5), c10::IValue("text"), c10::IValue(std::vector<int64_t>{1, 2}), c10::IValue(at::Device("cpu"))};
  for (const c10::IValue& v : values) {
    const c10::IValue back = take(tensor::from_literal(take(tensor::to_literal(v))));
    CHECK(back.tagKind() == v.tagKind());
    CHECK(back == v);
  }
  CHECK(take(tensor::to_literal(c10::IValue(at::kHalf), ir::Type::Kind::dtype)) == ir::Argument(ir::DType::f16));
  CHECK(!tensor::to_literal(at::randn({2})).ok());
}

TEST_CASE("a bundle holds a graph with its inputs; lost data is refused, or random when asked") {
  Directory d;
  const auto graph = take(ir::parse("graph g(%x: f32[3, 2], %w: f32[2, 3], %n: int) { %y: f32[3, 3] = aten.mm(%x, %w)  return (%y) }"));
  const at::Tensor x = at::randn({3, 2});
  const std::vector<c10::IValue> values = {x, x.t(), 4};
  const base::Status saved = tensor::save_bundle(d.path / "b", graph, {}, values, {1});
  REQUIRE_MESSAGE(saved.ok(), saved.error().text());
  size_t entries = 0;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator(d.path)) ++entries;
  CHECK(entries == 1);   // nothing is left beside the bundle
  tensor::LoadedBundle loaded = take(tensor::load_bundle(d.path / "b"));
  CHECK(ir::identical(loaded.bundle.graph, graph));
  CHECK(at::equal(loaded.inputs[0].toTensor(), x));
  CHECK(loaded.inputs[1].toTensor().is_alias_of(loaded.inputs[0].toTensor()));
  CHECK(loaded.inputs[2].toInt() == 4);
  CHECK(loaded.bundle.manifest.inputs[1].tensor.is_parameter);
  CHECK(!loaded.bundle.manifest.random_inputs);
  const std::string hex = loaded.bundle.manifest.inputs[0].tensor.storage.hex();
  fs::remove(d.path / "b" / "blobs" / hex.substr(0, 2) / hex);
  CHECK(!tensor::load_bundle(d.path / "b").ok());
  tensor::LoadedBundle random = take(tensor::load_bundle(d.path / "b", tensor::MissingData::randomise));
  CHECK(random.bundle.manifest.random_inputs);
  CHECK(random.inputs[1].toTensor().is_alias_of(random.inputs[0].toTensor()));
  CHECK(random.inputs[1].toTensor().strides() == x.t().strides());
}
