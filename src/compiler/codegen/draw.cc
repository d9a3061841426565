#include "compiler/codegen/draw.h"

#include "compiler/codegen/views.h"

namespace cutaway::codegen {

std::string Draw::text() const {
  char number[40] = "";
  if (kind == Kind::bernoulli) std::snprintf(number, sizeof number, " %.17g", p);
  return name + ": " + std::to_string(count) + " x " + (kind == Kind::bernoulli ? "bernoulli" : "uniform") + number + " " + std::string(ir::dtype_name(dtype));
}

std::optional<Draw> draw_of(const ir::Graph& graph, const ir::Node& n) {
  const bool is_bernoulli = n.target == "aten.bernoulli.p";
  if (n.kind != ir::Node::Kind::op || (!is_bernoulli && n.target != "aten.rand" && n.target != "aten.rand_like") || n.results.size() != 1) return std::nullopt;
  const ir::Type& type = graph.value(n.results[0]).type;
  const auto shape = shape_of(type);
  if (!shape || type.tensor.device.type != "cpu" || shape->numel() == 0 || !type.tensor.is_contiguous()) return std::nullopt;
  for (const auto& [key, a] : n.kwargs)
    if (key == "generator" && !a.is_none()) return std::nullopt;
  Draw d;
  d.dtype = type.tensor.dtype;
  d.count = shape->numel();
  using ir::DType;
  if (is_bernoulli) {
    if (n.args.size() != 2) return std::nullopt;
    const auto* p = n.args[1].as<double>();
    const auto* whole = n.args[1].as<int64_t>();
    if (!p && !whole) return std::nullopt;
    d.p = p ? *p : static_cast<double>(*whole);
    if (!(d.p >= 0 && d.p <= 1)) return std::nullopt;   // torch raises
    if (d.dtype != DType::f32 && d.dtype != DType::f64 && d.dtype != DType::bf16 && d.dtype != DType::f16 && d.dtype != DType::boolean) return std::nullopt;
  } else {
    d.kind = Draw::Kind::uniform;
    if (d.dtype != DType::f32 && d.dtype != DType::f64) return std::nullopt;
  }
  d.buffers.push_back({n.results[0], graph.value(n.results[0]).name, d.dtype, true});
  return d;
}

}  // namespace cutaway::codegen
