#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/record_dict.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/ir/edit.h"
#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/save_bundle.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

nb::list from_ivalues(const std::vector<c10::IValue>& values) {
  nb::list out;
  for (const c10::IValue& v : values) out.append(from_ivalue(v));
  return out;
}

// Dtypes are integers inside an IValue; the literal knows better.
nb::object input_object(const bundle::InputRef& ref, const c10::IValue& v) {
  if (const auto* d = ref.literal.as<ir::DType>()) return wrap_dtype(tensor::to_aten(*d));
  return from_ivalue(v);
}

at::Tensor rand_strided(const std::vector<int64_t>& size, const std::vector<int64_t>& stride, nb::handle dtype, const std::string& device, int64_t storage_offset, bool requires_grad, uint64_t seed, std::optional<std::pair<int64_t, int64_t>> range) {
  bundle::TensorRecord r;
  r.dtype = tensor::from_aten(to_ivalue(dtype).toScalarType());
  r.sizes = size;
  r.strides = stride;
  r.storage_offset = storage_offset;
  r.device = tensor::from_aten(at::Device(device));
  r.requires_grad = requires_grad;
  return unwrap(tensor::rand_strided(r, seed, range));
}

}  // namespace

void bind_tensor(nb::module_& m) {
  m.def("rand_strided", &rand_strided, nb::arg("size"), nb::arg("stride"), nb::arg("dtype"), nb::arg("device") = "cpu", nb::arg("storage_offset") = 0,
        nb::arg("requires_grad") = false, nb::arg("seed") = 0, nb::arg("range") = nb::none());
  m.def("index_range", [](const ir::Graph& graph, size_t input) -> std::optional<std::pair<int64_t, int64_t>> {
          if (input >= graph.inputs.size()) throw nb::index_error("the graph has no such input");
          return tensor::index_range(graph, graph.inputs[input].value);
        }, nb::arg("graph"), nb::arg("input"));
  m.def("clone_keeping_aliases", [](nb::sequence values) {
          const auto in = to_ivalues(values);
          auto out = [&] { nb::gil_scoped_release release; return tensor::clone_keeping_aliases(in); }();
          return from_ivalues(out);
        }, nb::arg("values"));
  m.def("cast_to_fp64", [](nb::sequence values) {
          const auto in = to_ivalues(values);
          auto out = [&] { nb::gil_scoped_release release; return tensor::cast_to_fp64(in); }();
          return from_ivalues(out);
        }, nb::arg("values"));
  m.def("cast_graph_to_fp64", [](const ir::Graph& graph) { return tensor::cast_to_fp64(graph); }, nb::arg("graph"));
  m.def("save_bundle", [](const std::string& path, const ir::Graph& graph, nb::sequence inputs, const std::vector<size_t>& parameters, std::optional<uint64_t> max_bytes, uint64_t seed, const std::map<std::string, std::string>& versions, const bundle::Manifest* given) {
          const auto values = to_ivalues(inputs);
          bundle::Manifest manifest = given ? *given : bundle::Manifest{};
          if (!given) manifest.seed = seed;
          for (const auto& [name, version] : versions) manifest.versions.try_emplace(name, version);
          nb::gil_scoped_release release;
          unwrap(tensor::save_bundle(path, graph, std::move(manifest), values, parameters, {.max_bytes = max_bytes.value_or(UINT64_MAX), .seed = seed}));
        }, nb::arg("path"), nb::arg("graph"), nb::arg("inputs"), nb::arg("parameters"), nb::arg("max_bytes"), nb::arg("seed"), nb::arg("versions"), nb::arg("manifest").none());
  m.def("load_bundle", [](const std::string& path, const std::optional<std::string>& device, bool random_inputs) {
          const auto onto = device_from(device);
          auto result = [&] {
            nb::gil_scoped_release release;
            return tensor::load_bundle(path, random_inputs ? tensor::MissingData::randomise : tensor::MissingData::refuse, onto);
          }();
          tensor::LoadedBundle loaded = unwrap(std::move(result));
          nb::list inputs;
          std::vector<size_t> parameters;
          for (size_t i = 0; i < loaded.inputs.size(); ++i) {
            inputs.append(input_object(loaded.bundle.manifest.inputs[i], loaded.inputs[i]));
            if (loaded.bundle.manifest.inputs[i].tensor.is_parameter) parameters.push_back(i);
          }
          const std::string manifest = bundle::manifest_to_json(loaded.bundle.manifest, ir::digest(loaded.bundle.graph));
          return std::make_tuple(std::move(loaded.bundle.graph), inputs, parameters, manifest);
        }, nb::arg("path"), nb::arg("device"), nb::arg("random_inputs"));
}

}  // namespace cutaway::bindings
