#include "compiler/aot/random_order.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler/aot/operator_traits.h"
#include "core/exec/interpreter.h"
#include "core/tensor/convert.h"
#include "core/trace/dispatch_keys.h"

namespace cutaway::aot {
namespace {

bool makes_fresh_memory(const std::string& target) {
  for (const char* name : {"aten.empty", "aten.new_empty", "aten.zeros", "aten.new_zeros", "aten.ones", "aten.new_ones", "aten.full", "aten.new_full"})
    if (target.starts_with(name)) return true;
  return false;
}

/// Some builds of torch draw into a row-major copy instead: asked, not assumed.
bool fills_as_memory_lies(at::ScalarType dtype) {
  const c10::impl::ExcludeDispatchKeyGuard really(c10::DispatchKeySet(trace::kBelowKey).add(trace::kAboveKey).add(c10::DispatchKey::Functionalize));
  const at::NoGradGuard quiet;
  at::Tensor across = at::empty({7, 5}, dtype).t(), straight = at::empty({7, 5}, dtype);
  across.bernoulli_(0.5, at::detail::createCPUGenerator(1));
  straight.bernoulli_(0.5, at::detail::createCPUGenerator(1));
  return at::equal(across.t(), straight);
}

/// Dimensions from the outermost to the innermost, when the tensor is dense and not row-major.
std::vector<int64_t> order_in_memory(const ir::TensorType& t) {
  std::vector<int64_t> order(t.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.strides[a].value() > t.strides[b].value(); });
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = t.sizes[order[i]].value();
    if (size != 1 && t.strides[order[i]].value() != step) return {};
    step *= size;
  }
  return order;
}

ir::Argument numbers_as_list(const std::vector<int64_t>& numbers) {
  ir::List list;
  for (const int64_t n : numbers) list.items.emplace_back(n);
  return list;
}

}  // namespace

base::Status keep_memory_order(ir::Graph& graph) {
  std::vector<bool> is_fresh(graph.values.size(), false);
  bool changed = false;
  std::vector<ir::Node> nodes;
  for (ir::Node& n : graph.body.nodes) {
    const ir::ValueId viewed = viewed_value(n);
    if (makes_fresh_memory(n.target) || (viewed != ir::kNoValue && is_fresh[viewed]))
      for (const ir::ValueId r : n.results) is_fresh[r] = true;
    const auto* given = n.target == "aten.bernoulli.p" ? n.args[0].as<ir::ValueRef>() : nullptr;
    const ir::TensorType* type = given && is_fresh[given->id] ? &graph.values[given->id].type.tensor : nullptr;
    if (!type || type->is_contiguous() || type->device.type != "cpu") {
      nodes.push_back(std::move(n));
      continue;
    }
    const auto order = order_in_memory(*type);
    if (order.empty() || !fills_as_memory_lies(tensor::to_aten(type->dtype))) {
      nodes.push_back(std::move(n));
      continue;
    }
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
    const ir::LocationId location = n.location;
    const auto permute = [&](ir::ValueId from, const std::vector<int64_t>& dims, ir::ValueId to) {
      ir::Node p;
      p.target = "aten.permute";
      p.args = {ir::ValueRef{from}, numbers_as_list(dims)};
      p.results = {to};
      p.returns = {ir::Node::kSingle};
      p.location = location;
      nodes.push_back(std::move(p));
    };
    const ir::Type like = graph.values[given->id].type;   // adding values moves the others; the types are found anew below
    const ir::ValueId source = given->id, memory = graph.add_value("memory", like), drawn = graph.add_value("drawn", like), result = n.results[0];
    permute(source, order, memory);
    ir::Node draw = std::move(n);
    draw.args[0] = ir::ValueRef{memory};
    draw.results = {drawn};
    nodes.push_back(std::move(draw));
    permute(drawn, back, result);
    is_fresh.resize(graph.values.size(), false);
    changed = true;
  }
  graph.body.nodes = std::move(nodes);
  if (!changed) return {};
  CUTAWAY_TRY_ASSIGN(graph, exec::infer_types(graph));
  return {};
}

}  // namespace cutaway::aot
