// A pass that makes numbers of symbolic sizes, where the failure does not need them: a backend then compiles for one size, which is simpler.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "core/base/json.h"
#include "diagnosis/minify/pass_list.h"

namespace cutaway::minify {
namespace {

using Kind = bundle::InputRef::Kind;
using Numbers = std::map<std::string, int64_t>;

std::optional<int64_t> evaluate(const ir::SymExpr& e, const Numbers& numbers) {
  using K = ir::SymExpr::Kind;
  if (e.kind == K::constant) return e.constant;
  if (e.kind == K::symbol) {
    const auto found = numbers.find(e.symbol);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int64_t> all;
  for (const auto& operand : e.operands) {
    const std::optional<int64_t> b = evaluate(*operand, numbers);
    if (!b) return std::nullopt;
    if (!all) { all = b; continue; }
    const int64_t a = *all;
    if ((e.kind == K::floor_div || e.kind == K::mod) && *b <= 0) return std::nullopt;
    int64_t result = 0;
    bool overflows = false;
    switch (e.kind) {
      case K::add: overflows = __builtin_add_overflow(a, *b, &result); break;
      case K::mul: overflows = __builtin_mul_overflow(a, *b, &result); break;
      case K::floor_div: result = a / *b - (a % *b < 0); break;   // towards minus infinity, as Python divides
      case K::mod: result = a % *b + (a % *b < 0 ? *b : 0); break;
      case K::min: result = std::min(a, *b); break;
      case K::max: result = std::max(a, *b); break;
      default: return std::nullopt;
    }
    if (overflows) return std::nullopt;
    all = result;
  }
  return all;
}

/// What the symbols are: as an input shows them now, else as they were when the graph was captured.
Numbers numbers_of(const Case& c) {
  Numbers numbers;
  if (const auto text = c.manifest.extra.find("symbols"); text != c.manifest.extra.end())
    if (auto parsed = base::Json::parse(text->second, "symbols"); parsed.ok())
      if (const auto* object = parsed->as<base::Json::Object>())
        for (const auto& [name, value] : *object)
          if (const auto* n = value.as<int64_t>()) numbers[name] = *n;
  for (size_t i = 0; i < c.graph.inputs.size() && i < c.manifest.inputs.size(); ++i) {
    const ir::Type& type = c.graph.value(c.graph.inputs[i].value).type;
    if (!type.is_tensor() || c.manifest.inputs[i].kind == Kind::literal) continue;
    const std::vector<int64_t>& sizes = c.manifest.inputs[i].tensor.sizes;
    for (size_t d = 0; d < sizes.size() && d < type.tensor.sizes.size(); ++d)
      if (const ir::Dim& size = type.tensor.sizes[d]; size.is_symbolic() && size.expr()->kind == ir::SymExpr::Kind::symbol) numbers[size.expr()->symbol] = sizes[d];
  }
  return numbers;
}

/// False when a symbol in it is not known.
bool fix(ir::Argument& a, const Numbers& numbers) {
  const auto fix_all = [&](std::vector<ir::Argument>& items) { return std::all_of(items.begin(), items.end(), [&](ir::Argument& item) { return fix(item, numbers); }); };
  if (auto* list = a.as<ir::List>()) return fix_all(list->items);
  if (auto* tuple = a.as<ir::Tuple>()) return fix_all(tuple->items);
  if (auto* slice = a.as<ir::Slice>()) return fix_all(slice->parts);
  if (auto* dict = a.as<ir::Dict>()) return std::all_of(dict->items.begin(), dict->items.end(), [&](auto& item) { return fix(item.second, numbers); });
  const auto* dim = a.as<ir::Dim>();
  if (!dim) return true;
  const std::optional<int64_t> n = dim->is_symbolic() ? evaluate(*dim->expr(), numbers) : dim->number();
  if (n) a = ir::Argument(*n);
  return n.has_value();
}

/// The case at the sizes that it has; none when it has symbolic sizes as inputs of their own, or one is not known.
std::optional<ir::Graph> fixed(const Case& c) {
  ir::Graph graph = c.graph;
  const Numbers numbers = numbers_of(c);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    ir::Type& type = graph.value(graph.inputs[i].value).type;
    if (!type.is_tensor() || c.manifest.inputs[i].kind == Kind::literal) return std::nullopt;
    const bool asks_gradient = type.tensor.requires_grad;
    type.tensor = c.manifest.inputs[i].tensor.type();
    if (c.manifest.inputs[i].make_contiguous) type.tensor.strides = ir::contiguous_strides(type.tensor.sizes);
    type.tensor.requires_grad = asks_gradient;
  }
  bool is_known = true;
  ir::for_each_node(graph.body, [&](ir::Node& n) {
    for (ir::Argument& a : n.args) is_known = is_known && fix(a, numbers);
    for (auto& [k, a] : n.kwargs) is_known = is_known && fix(a, numbers);
  });
  for (ir::Argument& a : graph.body.outputs) is_known = is_known && fix(a, numbers);
  if (!is_known) return std::nullopt;
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
