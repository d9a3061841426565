// A pass that makes numbers of symbolic sizes, where the failure does not need them: a backend then compiles for one size, which is simpler.
#include <cstdint>
#include <optional>

#include "core/base/json.h"
#include "core/symbolic/expression.h"
#include "diagnosis/minify/pass_list.h"

namespace cutaway::minify {
namespace {

using Kind = bundle::InputRef::Kind;

/// What the symbols are: as an input shows them now, else as they were when the graph was captured.
symbolic::SymbolValues numbers_of(const Case& c) {
  symbolic::SymbolValues numbers;
  if (const auto text = c.manifest.extra.find("symbols"); text != c.manifest.extra.end())
    if (auto parsed = base::Json::parse(text->second, "symbols"); parsed.ok())
      if (const auto* object = parsed->as<base::Json::Object>())
        for (const auto& [name, value] : *object)
          if (const auto* n = value.as<int64_t>()) numbers.set(name, *n);
  for (size_t i = 0; i < c.graph.inputs.size() && i < c.manifest.inputs.size(); ++i) {
    const ir::Type& type = c.graph.value(c.graph.inputs[i].value).type;
    if (!type.is_tensor() || c.manifest.inputs[i].kind == Kind::literal) continue;
    const std::vector<int64_t>& sizes = c.manifest.inputs[i].tensor.sizes;
    for (size_t d = 0; d < sizes.size() && d < type.tensor.sizes.size(); ++d)
      if (const ir::Dim& size = type.tensor.sizes[d]; size.is_symbolic() && size.expr()->kind == ir::SymExpr::Kind::symbol) numbers.set(size.expr()->symbol, sizes[d]);
  }
  return numbers;
}

/// The case at the sizes that it has; none when it has symbolic sizes as inputs of their own, or one is not known.
std::optional<ir::Graph> fixed(const Case& c) {
  ir::Graph graph = c.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    ir::Type& type = graph.value(graph.inputs[i].value).type;
    if (!type.is_tensor() || c.manifest.inputs[i].kind == Kind::literal) return std::nullopt;
    const bool asks_gradient = type.tensor.requires_grad;
    type.tensor = c.manifest.inputs[i].tensor.type();
    if (c.manifest.inputs[i].make_contiguous) type.tensor.strides = ir::contiguous_strides(type.tensor.sizes);
    type.tensor.requires_grad = asks_gradient;
  }
  if (!symbolic::settle(graph.body, numbers_of(c)).ok()) return std::nullopt;
  return graph;
}

}  // namespace

void fix_symbolic_sizes(Chooser& chooser, Case& c, const PassContext&) {
  if (c.manifest.tracing_mode != "symbolic") return;
  std::optional<ir::Graph> graph = fixed(c);
  if (!graph || chooser.keep()) return;
  c.graph = std::move(*graph);
  c.manifest.tracing_mode = "real";
  c.manifest.extra.erase("symbols");
}

}  // namespace cutaway::minify
