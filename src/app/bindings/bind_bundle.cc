// Bundles, as far as no tensors are needed: manifests as JSON text, and checking.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "core/bundle/bundle.h"

namespace nb = nanobind;

namespace cutaway::bindings {

namespace {

std::string read_manifest_text(const std::filesystem::path& path) {
  const nb::gil_scoped_release release;
  const bundle::ParsedManifest parsed = unwrap(bundle::read_manifest(path));
  return bundle::manifest_to_json(parsed.manifest, parsed.graph_digest);
}

void verify(const std::filesystem::path& path) {
  const nb::gil_scoped_release release;
  unwrap(bundle::verify_bundle(path));
}

bundle::Manifest manifest_from_text(std::string_view text) {
  return unwrap(bundle::manifest_from_json(text, "<manifest>")).manifest;
}

std::vector<std::string> record_differences(std::string_view a, std::string_view b) {
  return bundle::differing_fields(unwrap(bundle::TensorRecord::from_json(a, "<first>")), unwrap(bundle::TensorRecord::from_json(b, "<second>")));
}

}  // namespace

void bind_bundle(nb::module_& m) {
  nb::class_<bundle::Manifest>(m, "Manifest", "What a bundle says about its graph: inputs, stage, backend, failure, versions.")
      .def(nb::init<>())
      .def_static("from_json", &manifest_from_text, nb::arg("text"), "Reads the text of a manifest.json; cutaway.Error names the field that is wrong.")
      .def("to_json", [](const bundle::Manifest& self) { return bundle::manifest_to_json(self, {}); },
           "The text of a manifest.json, without the graph's digest (zeros in its place).")
      .def_rw("name", &bundle::Manifest::name)
      .def_rw("stage", &bundle::Manifest::stage)
      .def_rw("backend", &bundle::Manifest::backend)
      .def_rw("tracing_mode", &bundle::Manifest::tracing_mode)
      .def_rw("accuracy", &bundle::Manifest::accuracy)
      .def_rw("seed", &bundle::Manifest::seed)
      .def_rw("random_inputs", &bundle::Manifest::random_inputs)
      .def("__eq__", [](const bundle::Manifest& a, const bundle::Manifest& b) { return a == b; });
  m.def("read_manifest", &read_manifest_text, nb::arg("path"), "The manifest of the bundle at `path`, checked, as JSON text.");
  m.def("verify_bundle", &verify, nb::arg("path"), "Checks a bundle whole: manifest, graph, and the content of every blob. Raises cutaway.Error.");
  m.def("looks_like_bundle", &bundle::looks_like_bundle, nb::arg("path"), "Whether `path` is a directory with a manifest.json and a graph.cut.");
  m.def("differing_fields", &record_differences, nb::arg("a"), nb::arg("b"), "The fields in which two tensor records (JSON text) differ, in words.");
}

}  // namespace cutaway::bindings
