#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/record_dict.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/tensor/convert.h"
#include "core/tensor/tensor_store.h"

namespace nb = nanobind;

namespace cutaway::bindings {

namespace {
// A store with its names. Stays where it is: the names refer to the store.
struct NamedStore {
  store::Store store;
  tensor::NamedTensors names{store};
  explicit NamedStore(store::Store s) : store(std::move(s)) {}
  NamedStore(const NamedStore&) = delete;
};
}  // namespace

nb::dict record_dict(const bundle::TensorRecord& r) {
  nb::dict d;
  d["dtype"] = wrap_dtype(tensor::to_aten(r.dtype));
  d["size"] = nb::cast(r.sizes);
  d["stride"] = nb::cast(r.strides);
  d["storage_offset"] = r.storage_offset;
  d["device"] = r.device.text();
  d["requires_grad"] = r.requires_grad;
  d["is_leaf"] = r.is_leaf;
  d["is_conj"] = r.is_conj;
  d["is_neg"] = r.is_neg;
  d["is_parameter"] = r.is_parameter;
  if (r.storage.is_none()) d["storage"] = nb::none();
  else d["storage"] = r.storage.hex();
  d["storage_bytes"] = r.storage_bytes;
  return d;
}

std::optional<at::Device> device_from(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return at::Device(*text);
}

void bind_store(nb::module_& m) {
  nb::class_<NamedStore>(m, "Store")
      .def("__init__", [](NamedStore* self, const std::string& path, bool durable) {
             const auto durability = durable ? store::Durability::durable : store::Durability::fast;
             new (self) NamedStore(unwrap(store::Store::open(path, store::Store::Open::create, durability)));
           }, nb::arg("path"), nb::arg("durable") = true)
      .def_prop_ro("path", [](const NamedStore& s) { return s.store.root().string(); })
      .def("put_tensor", [](NamedStore& s, const std::string& name, const at::Tensor& t, bool is_parameter) {
             auto as = is_parameter ? tensor::NamedTensors::As::parameter : tensor::NamedTensors::As::tensor;
             auto record = [&] { nb::gil_scoped_release release; return s.names.put(name, t, as); }();
             return record_dict(unwrap(std::move(record)));
           }, nb::arg("name"), nb::arg("tensor"), nb::arg("is_parameter") = false)
      .def("get_tensors", [](const NamedStore& s, const std::vector<std::string>& names, const std::optional<std::string>& device) {
             const auto onto = device_from(device);
             auto tensors = [&] { nb::gil_scoped_release release; return s.names.get(names, onto); }();
             return unwrap(std::move(tensors));
           }, nb::arg("names"), nb::arg("device") = nb::none())
      .def("metadata", [](const NamedStore& s, const std::string& name) { return record_dict(unwrap(s.names.metadata(name))); }, nb::arg("name"))
      .def("names", [](const NamedStore& s, const std::string& prefix) { return unwrap(s.store.list_records(prefix)); }, nb::arg("prefix") = "")
      .def("compare", [](const NamedStore& s, const std::string& a, const std::string& b) {
             auto found = [&] { nb::gil_scoped_release release; return tensor::compare_recordings(s.store, a, b); }();
             std::vector<std::tuple<std::string, std::vector<std::string>, int64_t, int64_t>> out;
             for (auto& d : unwrap(std::move(found))) out.emplace_back(d.name, d.fields, d.unequal_elements, d.elements);
             return out;
           }, nb::arg("a"), nb::arg("b"))
      .def("put_storage", [](NamedStore& s, const at::Tensor& t) {
             auto record = [&] { nb::gil_scoped_release release; return tensor::write_tensor(s.store, t); }();
             return unwrap(std::move(record)).storage.hex();
           }, nb::arg("tensor"), "Writes the whole storage that the tensor looks at; returns its digest.")
      .def("get_storage", [](const NamedStore& s, const std::string& digest, const std::optional<std::string>& device) {
             const auto onto = device_from(device);
             bundle::TensorRecord whole;   // all its bytes, as numbers
             whole.storage = unwrap(base::Digest::parse(digest));
             whole.storage_bytes = unwrap(s.store.size_of(whole.storage));
             whole.dtype = ir::DType::u8;
             whole.sizes = {static_cast<int64_t>(whole.storage_bytes)};
             whole.strides = {1};
             auto bytes = [&] { nb::gil_scoped_release release; return tensor::TensorReader(s.store, onto).read(whole); }();
             return unwrap(std::move(bytes));
           }, nb::arg("digest"), nb::arg("device") = nb::none(), "The bytes of a storage, verified, as a tensor of u8 in memory of its own.")
      .def("verify", [](const NamedStore& s, const std::string& digest) {
             auto d = unwrap(base::Digest::parse(digest));
             nb::gil_scoped_release release;
             unwrap(s.store.verify(d));
           }, nb::arg("digest"));
  m.def("compute_tensor_metadata", [](const at::Tensor& t) { return record_dict(unwrap(tensor::compute_tensor_metadata(t))); }, nb::arg("tensor"));
  m.def("digest_storage", [](const at::Tensor& t) {
          if (auto metadata = tensor::compute_tensor_metadata(t); !metadata.ok()) throw ErrorException(std::move(metadata).error());
          auto digest = [&] { nb::gil_scoped_release release; return tensor::digest_storage(t.storage()); }();
          return unwrap(std::move(digest)).hex();
        }, nb::arg("tensor"));
}

}  // namespace cutaway::bindings
