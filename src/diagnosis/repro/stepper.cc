#include "diagnosis/repro/stepper.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/exec/interpreter.h"
#include "core/ir/edit.h"
#include "core/tensor/make.h"

namespace cutaway::repro {
namespace {

template <class F> void for_each_use_inside(const ir::Node& n, F&& f) {
  ir::for_each_use(n, f);
  for (const ir::Block& region : n.regions) {
    for (const ir::Node& inner : region.nodes) for_each_use_inside(inner, f);
    for (const ir::Argument& a : region.outputs) ir::for_each_value(a, f);
  }
}

}  // namespace

Stepper::Stepper(const ir::Graph& graph, const std::vector<c10::IValue>& inputs, const exec::RandomStart& start, const std::vector<std::vector<size_t>>& groups)
    : graph_(graph), random_(start), values_(graph.values.size()), last_uses_(graph.body.nodes.size()) {
  const std::vector<c10::IValue> own = tensor::clone_keeping_aliases(inputs);
  for (size_t i = 0; i < own.size() && i < graph.inputs.size(); ++i) values_[graph.inputs[i].value] = own[i];
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> last(graph.values.size(), kNever);
  const auto used_at = [&](const ir::Node& n, size_t at) {
    for_each_use_inside(n, [&](ir::ValueId id) { last[id] = last[id] == kNever ? at : std::max(last[id], at); });
  };
  for (size_t i = 0; i < graph.body.nodes.size(); ++i) used_at(graph.body.nodes[i], i);
  for (const std::vector<size_t>& group : groups)
    for (size_t i : group) used_at(graph.body.nodes[i], group.back());
  for (ir::ValueId id = 0; id < static_cast<ir::ValueId>(last.size()); ++id)
    if (last[id] != kNever) last_uses_[last[id]].push_back(id);
}

void Stepper::advance(size_t to) {
  if (to <= at_) return;
  std::vector<size_t> positions(to - at_);
  std::iota(positions.begin(), positions.end(), at_);
  std::vector<ir::ValueId> lifted, produced;
  const ir::Graph stretch = ir::extract_subgraph(graph_, positions, &lifted, &produced);
  auto program = exec::Program::prepare(stretch);
  TORCH_CHECK_VALUE(program.ok(), program.ok() ? "" : program.error().text());
  std::vector<c10::IValue> inputs = values(lifted);
  for (size_t i = at_; i < to; ++i)
    for (ir::ValueId id : last_uses_[i]) values_[id] = c10::IValue();
  std::vector<c10::IValue> results = program->run(inputs);
  for (size_t i = 0; i < produced.size(); ++i) values_[produced[i]] = std::move(results[i]);
  at_ = to;
}

std::vector<c10::IValue> Stepper::values(const std::vector<ir::ValueId>& ids) const {
  std::vector<c10::IValue> out;
  out.reserve(ids.size());
  for (ir::ValueId id : ids) out.push_back(values_[id]);
  return out;
}

}  // namespace cutaway::repro
