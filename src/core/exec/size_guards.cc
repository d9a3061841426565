#include "core/exec/size_guards.h"

#include <algorithm>
#include <cstdint>

namespace cutaway::exec {

base::Result<SizeGuards> SizeGuards::prepare(const ir::Graph& graph, std::vector<symbolic::Guard> guards) {
  SizeGuards out;
  std::vector<ir::Dim> used;
  for (const auto& g : guards) {
    used.push_back(g.left);
    used.push_back(g.right);
  }
  std::vector<size_t> symbolic_inputs;
  const auto sizes_of = [&](size_t input) -> const std::vector<ir::Dim>& { return graph.value(graph.inputs[input].value).type.tensor.sizes; };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!graph.value(graph.inputs[i].value).type.is_tensor() || std::ranges::none_of(sizes_of(i), [](const ir::Dim& d) { return d.is_symbolic(); })) continue;
    symbolic_inputs.push_back(i);
    used.insert(used.end(), sizes_of(i).begin(), sizes_of(i).end());
  }
  CUTAWAY_TRY_ASSIGN(out.symbols_, SymbolSources::find(graph, used));
  const auto& names = out.symbols_.names();
  for (const size_t i : symbolic_inputs) {
    auto& fixed = out.inputs_.emplace_back(Fixed{i, {}});
    for (const ir::Dim& d : sizes_of(i)) fixed.sizes.push_back(*symbolic::Expression::make(d, names));
  }
  CUTAWAY_TRY_ASSIGN(out.tests_, symbolic::make_tests(guards, names));
  out.guards_ = std::move(guards);
  return out;
}

std::string SizeGuards::check(const std::vector<c10::IValue>& inputs) const {
  try {
    const std::vector<int64_t> numbers = symbols_.read(inputs);
    for (const auto& [input, sizes] : inputs_) {
      if (input >= inputs.size() || !inputs[input].isTensor()) return "input " + std::to_string(input) + " is not a tensor";
      const at::Tensor& t = inputs[input].toTensor();
      if (t.dim() != static_cast<int64_t>(sizes.size())) return "input " + std::to_string(input) + " has " + std::to_string(t.dim()) + " dimensions, not " + std::to_string(sizes.size());
      for (size_t d = 0; d < sizes.size(); ++d)
        if (const auto wanted = sizes[d].at(numbers); t.size(static_cast<int64_t>(d)) != wanted)
          return "input " + std::to_string(input) + " has size " + std::to_string(t.size(static_cast<int64_t>(d))) + " in dimension " + std::to_string(d) + ", where the graph has " +
                 (wanted ? std::to_string(*wanted) : "a number that does not fit into 64 bits");
    }
    for (size_t i = 0; i < guards_.size(); ++i) {
      const symbolic::Guard& g = guards_[i];
      const auto sides = tests_[i].sides(numbers);
      if (!sides) return g.text() + " cannot be computed: a size divides by zero or does not fit into 64 bits";
      if (!tests_[i].holds(*sides)) return g.text() + " does not hold: " + std::to_string(sides->left) + " and " + std::to_string(sides->right) + (g.because.empty() ? "" : " (" + g.because + ")");
    }
    return {};
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
}

}  // namespace cutaway::exec
