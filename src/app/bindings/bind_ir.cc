// cutaway.Graph: reading, printing, looking at, verifying and editing graphs. What needs tensors (running, importing, exporting)
// is attached by the folders that have them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "core/ir/diff.h"
#include "core/ir/edit.h"
#include "core/ir/notebook.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "diagnosis/report/notebook.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cutaway::bindings {
namespace {

std::string_view kind_text(ir::Node::Kind k) { return k == ir::Node::Kind::op ? "op" : k == ir::Node::Kind::call ? "call" : "scope"; }
std::string_view kind_text(ir::InputKind k) {
  constexpr std::string_view names[] = {"user", "parameter", "buffer", "constant"};
  return names[static_cast<size_t>(k)];
}

/// Copies of what Python looks at: they stay what they were when the graph is edited.
struct InputView {
  std::string name, type, kind, qualified_name;
  std::vector<std::string> sizes;
};
InputView view_of(const ir::Graph& g, const ir::Input& in) {
  const ir::Value& value = g.value(in.value);
  InputView v{value.name, value.type.text(), std::string(kind_text(in.kind)), in.qualified_name, {}};
  if (value.type.is_tensor())
    for (const ir::Dim& size : value.type.tensor.sizes) v.sizes.push_back(size.text());
  return v;
}
struct NodeView {
  std::string kind, target;
  std::vector<std::string> args, results;
  std::vector<std::pair<std::string, std::string>> kwargs;
  std::string file, function, module, text;
  int line = 0;
  std::vector<NodeView> region;
};

NodeView view_of(const ir::Graph& g, const ir::Node& n) {
  NodeView v;
  v.kind = kind_text(n.kind);
  v.target = n.target;
  for (const ir::Argument& a : n.args) v.args.push_back(ir::print_argument(g, a));
  for (const auto& [key, a] : n.kwargs) v.kwargs.emplace_back(key, ir::print_argument(g, a));
  for (ir::ValueId id : n.results) v.results.push_back(g.value(id).name);
  if (n.location < g.locations.size()) {
    const ir::Location& l = g.locations[n.location];
    v.file = l.file;
    v.line = l.line;
    v.function = l.function;
    v.module = l.module;
  }
  v.text = ir::print_node(g, n);
  for (const ir::Block& region : n.regions)
    for (const ir::Node& inner : region.nodes) v.region.push_back(view_of(g, inner));
  return v;
}

ir::ValueId value_named(const ir::Graph& g, std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(1);
  if (const ir::ValueId id = ir::find_value(g, name); id != ir::kNoValue) return id;
  throw nb::key_error(("the graph has no value %" + std::string(name)).c_str());
}

void bind_views(nb::module_& m) {
  nb::class_<InputView>(m, "GraphInput", "An input of a graph, as it was when it was asked for.")
      .def_ro("name", &InputView::name)
      .def_ro("type", &InputView::type, "As in the text form: \"f32[2, 64]\".")
      .def_ro("sizes", &InputView::sizes, "Of a tensor, as text: \"64\", \"s0*2\".")
      .def_ro("kind", &InputView::kind, "\"user\", \"parameter\", \"buffer\" or \"constant\".")
      .def_ro("qualified_name", &InputView::qualified_name, "Of a parameter, buffer or constant; else empty.")
      .def("__repr__", [](const InputView& v) { return "%" + v.name + ": " + v.type; });
  nb::class_<NodeView>(m, "GraphNode", "A node of a graph, as it was when it was asked for.")
      .def_ro("kind", &NodeView::kind, "\"op\", \"call\" or \"scope\".")
      .def_ro("target", &NodeView::target)
      .def_ro("args", &NodeView::args, "Arguments as text: \"%x\", \"2.0\".")
      .def_prop_ro("kwargs", [](const NodeView& v) { nb::dict d; for (auto& [k, t] : v.kwargs) d[k.c_str()] = t; return d; })
      .def_ro("results", &NodeView::results, "Names of what it defines.")
      .def_ro("file", &NodeView::file)
      .def_ro("line", &NodeView::line, "0 when not known.")
      .def_ro("function", &NodeView::function)
      .def_ro("module", &NodeView::module)
      .def_prop_ro("region", [](const NodeView& v) { return v.region; }, "The nodes inside a call or scope.")
      .def("__repr__", [](const NodeView& v) { return v.text; });
  nb::class_<ir::Difference>(m, "Difference", "One difference between two graphs.")
      .def_ro("where", &ir::Difference::where)
      .def_ro("text", &ir::Difference::text)
      .def("__repr__", [](const ir::Difference& d) { return d.text; });
}

}  // namespace

void bind_ir(nb::module_& m) {
  bind_views(m);
  nb::class_<ir::Graph>(m, "Graph", nb::dynamic_attr(), "A program of operators over typed values; str() is its text form.")
      .def_static("parse", [](std::string_view text, std::string_view file) { return unwrap(ir::parse(text, file)); }, "text"_a, "file"_a = "<text>",
                  "Reads the text form. Raises cutaway.Error with the place of the mistake.")
      .def("__str__", [](const ir::Graph& g) { return ir::print(g); })
      .def("__repr__", [](const ir::Graph& g) { return ir::summary(g); })
      .def("_repr_html_", &report::graph_for_notebook)
      .def("text", [](const ir::Graph& g, bool header, bool types, bool locations, bool regions) { return ir::print(g, {header, types, locations, regions}); },
           nb::kw_only(), "header"_a = false, "types"_a = true, "locations"_a = true, "regions"_a = true, "The text form; without types or regions it cannot be read back.")
      .def("__eq__", [](const ir::Graph& a, const ir::Graph& b) { return ir::identical(a, b); }, nb::is_operator(), "Everything that the text shows is equal.")
      .def("__hash__", [](const ir::Graph& g) { return static_cast<Py_hash_t>(ir::digest(g).low >> 1); })
      .def("__len__", &ir::count_nodes)
      .def("__copy__", [](const ir::Graph& g) { return g; })
      .def("__deepcopy__", [](const ir::Graph& g, nb::dict) { return g; }, "memo"_a)
      .def("__getstate__", [](const ir::Graph& g) { return ir::print(g, {.header = true}); })
      .def("__setstate__", [](ir::Graph& g, std::string_view text) { new (&g) ir::Graph(unwrap(ir::parse(text, "<pickle>"))); })
      .def("copy", [](const ir::Graph& g) { return g; })
      .def_rw("name", &ir::Graph::name)
      .def_prop_ro("inputs", [](const ir::Graph& g) {
        std::vector<InputView> out;
        for (const ir::Input& in : g.inputs) out.push_back(view_of(g, in));
        return out;
      })
      .def_prop_ro("nodes", [](const ir::Graph& g) {
        std::vector<NodeView> out;
        for (const ir::Node& n : g.body.nodes) out.push_back(view_of(g, n));
        return out;
      })
      .def_prop_ro("outputs", [](const ir::Graph& g) {
        std::vector<std::string> out;
        for (const ir::Argument& a : g.body.outputs) out.push_back(ir::print_argument(g, a));
        return out;
      }, "What it returns, as text.")
      .def("digest", [](const ir::Graph& g) { return ir::digest(g).hex(); }, "32 hexadecimal digits that do not depend on names and source lines.")
      .def("canonical_text", &ir::canonical_text, "The text whose digest digest() is.")
      .def("verify", [](const ir::Graph& g) {
        std::vector<std::string> out;
        for (const base::Error& e : ir::verify(g)) out.push_back(e.text());
        return out;
      }, "What is wrong with the graph; empty when nothing is.")
      .def("remove_dead_code", [](ir::Graph& g) { return ir::remove_dead_code(g); }, "Removes nodes whose results nothing uses and that have no effects; returns how many.")
      .def("remove_unused_inputs", &ir::remove_unused_inputs, "Returns the old positions of the inputs that stay.")
      .def("keep_outputs", [](ir::Graph& g, const std::vector<size_t>& positions) {
        for (size_t p : positions) if (p >= g.body.outputs.size()) throw nb::index_error("the graph has no such output");
        ir::keep_outputs(g, positions);
      }, "positions"_a)
      .def("replace_value_by_input", [](ir::Graph& g, std::string_view name) {
        if (ir::replace_value_by_input(g, value_named(g, name)) == ir::kNoValue) throw nb::value_error("only values outside of regions can become inputs");
      }, "name"_a)
      .def("replace_uses", [](ir::Graph& g, std::string_view from, std::string_view to) { ir::replace_uses(g, value_named(g, from), value_named(g, to)); }, "old"_a, "new"_a)
      .def("extract", [](const ir::Graph& g, const std::vector<size_t>& positions) {
        for (size_t p : positions) if (p >= g.body.nodes.size()) throw nb::index_error("the graph has no such node");
        return ir::extract_subgraph(g, positions);
      }, "positions"_a, "The nodes at these positions as a graph of their own.")
      .def("prefix", [](const ir::Graph& g, size_t last) {
        if (last >= g.body.nodes.size()) throw nb::index_error("the graph has no such node");
        return ir::prefix(g, last);
      }, "last"_a)
      .def("renumber", [](ir::Graph& g, bool rename) { ir::renumber(g, rename ? ir::Names::canonical : ir::Names::keep); }, nb::kw_only(), "rename"_a = false);

  m.def("diff", &ir::diff, "a"_a, "b"_a, "Differences by structure; names of values and source lines do not count.");
  m.def("unified_diff", [](const ir::Graph& a, const ir::Graph& b, std::string_view a_name, std::string_view b_name, int context) {
    return ir::unified_diff(ir::print(a), ir::print(b), a_name, b_name, context);
  }, "a"_a, "b"_a, "a_name"_a = "a", "b_name"_a = "b", nb::kw_only(), "context"_a = 3);
}

}  // namespace cutaway::bindings
