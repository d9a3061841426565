#include "core/exec/size_guards.h"

#include <cstdint>

namespace cutaway::exec {

base::Result<SizeGuards> SizeGuards::prepare(const ir::Graph& graph, std::vector<symbolic::Guard> guards) {
  SizeGuards out;
  std::vector<ir::Dim> used;
  for (const auto& g : guards) {
    used.push_back(g.left);
    used.push_back(g.right);
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto& type = graph.value(graph.inputs[i].value).type;
    if (!type.is_tensor()) continue;
    bool is_symbolic = false;
    for (const auto& d : type.tensor.sizes) is_symbolic |= d.is_symbolic();
    if (!is_symbolic) continue;
    out.inputs_.push_back({i, type.tensor});
    used.insert(used.end(), type.tensor.sizes.begin(), type.tensor.sizes.end());
  }
  CUTAWAY_TRY_ASSIGN(out.symbols_, SymbolSources::find(graph, used));
  out.guards_ = std::move(guards);
  return out;
}

std::string SizeGuards::check(const std::vector<c10::IValue>& inputs) const {
  try {
    const auto values = symbols_.read(inputs);
    for (const auto& [input, type] : inputs_) {
      if (input >= inputs.size() || !inputs[input].isTensor()) return "input " + std::to_string(input) + " is not a tensor";
      const at::Tensor& t = inputs[input].toTensor();
      if (t.dim() != static_cast<int64_t>(type.sizes.size())) return "input " + std::to_string(input) + " has " + std::to_string(t.dim()) + " dimensions, not " + std::to_string(type.sizes.size());
      for (size_t d = 0; d < type.sizes.size(); ++d)
        if (const auto wanted = evaluate(type.sizes[d], values); t.size(static_cast<int64_t>(d)) != wanted)
          return "input " + std::to_string(input) + " has size " + std::to_string(t.size(static_cast<int64_t>(d))) + " in dimension " + std::to_string(d) + ", where the graph has " + std::to_string(wanted);
    }
    for (const auto& g : guards_) {
      const int64_t left = evaluate(g.left, values), right = evaluate(g.right, values);
      using Kind = symbolic::Condition::Kind;
      const bool holds = g.kind == Kind::equal ? left == right : g.kind == Kind::not_equal ? left != right : g.kind == Kind::less ? left < right : left <= right;
      if (!holds) return g.text() + " does not hold: " + std::to_string(left) + " and " + std::to_string(right) + (g.because.empty() ? "" : " (" + g.because + ")");
    }
    return {};
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
}

}  // namespace cutaway::exec
