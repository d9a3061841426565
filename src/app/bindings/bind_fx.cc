#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "app/composition/size_tuples.h"
#include "app/fx/export.h"
#include "app/fx/import.h"
#include "app/fx/values.h"
#include "core/script/script.h"
#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/tensor_store.h"

namespace nb = nanobind;

namespace cutaway::bindings {

using namespace fx;

namespace {

// Metadata of the given inputs, or of the graph's types; random numbers where they are tensors.
std::string graph_to_python(const ir::Graph& graph, nb::handle given, std::vector<std::string> files, uint64_t seed) {
  std::vector<bundle::InputRef> refs;
  if (given.is_none()) {
    refs = unwrap(script::inputs_from_types(graph, seed));
  } else {
    if (nb::len(given) != graph.inputs.size()) throw ErrorException({.what = "the graph has " + std::to_string(graph.inputs.size()) + " inputs, and " + std::to_string(nb::len(given)) + " were given"});
    for (nb::handle h : given) {
      bundle::InputRef ref;
      if (is_tensor(h.ptr())) {
        ref.kind = bundle::InputRef::Kind::seeded;
        ref.seed = seed + refs.size();
        ref.reason = "a script holds no data";
        ref.tensor = unwrap(tensor::compute_tensor_metadata(unwrap_tensor(h.ptr())));
      } else {
        ref.kind = bundle::InputRef::Kind::literal;
        ref.literal = unwrap(to_argument(FxWords(), h, Tuples::keep, [](nb::handle) { return base::Error{.what = "a node of an fx graph is no input"}; }));
      }
      refs.push_back(std::move(ref));
    }
  }
  for (size_t i = 0; i < refs.size(); ++i)
    if (refs[i].kind == bundle::InputRef::Kind::seeded) refs[i].range = tensor::index_range(graph, graph.inputs[i].value);
  return unwrap(script::to_python(graph, refs, {.files = std::move(files), .seed = seed}));
}

}  // namespace

void bind_fx(nb::module_& m) {
  m.def("_size_expression", [](nb::handle e, const nb::dict& known) -> nb::object {
    const auto found = read_sympy(e, [&](nb::handle part) -> std::optional<ir::Dim> {
      if (!known.contains(part)) return std::nullopt;
      return composition::size_of_tuple(known[part]);
    });
    return found ? composition::tuple_of_size(*found) : nb::none();
  }, nb::arg("expression"), nb::arg("known"), "A sympy expression as ours (cutaway._sizes); known: a symbol of torch's -> ours. None: it has no counterpart.");
  auto give = [](Imported i) { return nb::make_tuple(nb::cast(std::move(i.graph)), i.lifted); };
  m.def("import_fx", [give](nb::handle graph_module, nb::handle examples) { return give(import_fx(graph_module, examples)); },
        nb::arg("graph_module"), nb::arg("example_inputs").none() = nb::none(), "A torch.fx.GraphModule as (Graph, lifted tensors).");
  m.def("import_exported_program", [give](nb::handle program) { return give(import_exported_program(program)); }, nb::arg("program"),
        "A torch.export.ExportedProgram as (Graph, lifted tensors).");
  m.def("export_fx", &export_fx, nb::arg("graph"), nb::arg("lifted").none() = nb::none(), nb::arg("grad_enabled").none() = nb::none(),
        "A Graph as a torch.fx.GraphModule.");
  m.def("graph_to_python", &graph_to_python, nb::arg("graph"), nb::arg("inputs").none(), nb::arg("files"), nb::arg("seed"), "A script that needs torch alone.");
}

}  // namespace cutaway::bindings
