#include "compiler/codegen/attention.h"

#include <algorithm>
#include <cmath>

#include "compiler/codegen/views.h"

namespace cutaway::codegen {

std::string AttentionCall::text() const {
  return name + ": attention, " + std::to_string(batch * heads) + " heads, " + std::to_string(rows) + " rows, " + std::to_string(keys) + " keys, " + std::to_string(width) + " wide" + (is_causal ? ", causal" : "") + (mask ? ", with a mask" : "");
}

std::optional<AttentionCall> attention_of(const ir::Graph& g, const Origins& from, const ir::Node& n) {
  constexpr int64_t kMostWidth = 256, kMostKeys = 8192;
  if (n.kind != ir::Node::Kind::op || n.target != "aten._scaled_dot_product_flash_attention_for_cpu" || n.results.size() != 2 || n.args.size() < 3 || n.args.size() > 5) return std::nullopt;
  AttentionCall a;
  for (size_t i = 0; i < 3; ++i)
    if (!n.args[i].as<ir::ValueRef>()) return std::nullopt;
  const auto is_zero = [](const ir::Argument& x) { return (x.as<double>() && *x.as<double>() == 0) || (x.as<int64_t>() && *x.as<int64_t>() == 0); };
  if (n.args.size() > 3 && !is_zero(n.args[3])) return std::nullopt;
  if (n.args.size() > 4) {
    if (!n.args[4].as<bool>()) return std::nullopt;
    a.is_causal = *n.args[4].as<bool>();
  }
  std::optional<ir::ValueId> mask;
  std::optional<double> scale;
  for (const auto& [key, value] : n.kwargs) {
    if (value.is_none()) continue;
    if (key == "attn_mask" && value.as<ir::ValueRef>()) mask = value.as<ir::ValueRef>()->id;
    else if (key == "scale" && value.as<double>()) scale = *value.as<double>();
    else if (key == "dropout_p" && is_zero(value)) continue;
    else if (key == "is_causal" && value.as<bool>()) a.is_causal = *value.as<bool>();
    else return std::nullopt;
  }
  const ir::ValueId q = n.args[0].as<ir::ValueRef>()->id, k = n.args[1].as<ir::ValueRef>()->id, v = n.args[2].as<ir::ValueRef>()->id;
  std::vector<ir::ValueId> all{q, k, v, n.results[0], n.results[1]};
  if (mask) all.push_back(*mask);
  for (ir::ValueId id : all) {
    const ir::Type& t = g.value(id).type;
    if (!shape_of(t) || shape_of(t)->numel() == 0 || t.tensor.device.type != "cpu" || t.tensor.dtype != ir::DType::f32) return std::nullopt;
  }
  const Shape qs = *shape_of(g.value(q).type), ks = *shape_of(g.value(k).type), vs = *shape_of(g.value(v).type), os = *shape_of(g.value(n.results[0]).type), ls = *shape_of(g.value(n.results[1]).type);
  if (qs.sizes.size() != 4 || ks.sizes.size() != 4 || ks.sizes != vs.sizes || os.sizes != qs.sizes || ls.sizes.size() != 3) return std::nullopt;
  a.batch = qs.sizes[0];
  a.heads = qs.sizes[1];
  a.rows = qs.sizes[2];
  a.width = qs.sizes[3];
  a.keys = ks.sizes[2];
  if (ks.sizes[0] != a.batch || ks.sizes[1] != a.heads || ks.sizes[3] != a.width || ls.sizes != std::vector<int64_t>{a.batch, a.heads, a.rows}) return std::nullopt;
  if (a.width > kMostWidth || a.keys > kMostKeys || (a.is_causal && (a.rows != a.keys || mask))) return std::nullopt;
  a.scale = scale.value_or(1 / std::sqrt(static_cast<double>(a.width)));
  const auto operand = [&](ir::ValueId id, const Shape& s, bool is_written) {
    AttentionCall::Operand o;
    const ir::ValueId root = is_written ? id : from.root[id].value;
    o.buffer = static_cast<uint32_t>(std::ranges::find(a.buffers, root, &Buffer::value) - a.buffers.begin());
    if (o.buffer == a.buffers.size()) a.buffers.push_back({root, g.value(root).name, ir::DType::f32, is_written});
    o.offset = is_written ? 0 : from.root[id].offset;
    std::ranges::copy(s.strides, o.strides);
    return o;
  };
  a.q = operand(q, qs, false);
  a.k = operand(k, ks, false);
  a.v = operand(v, vs, false);
  if (mask) {   // repeated to [batch, heads, rows, keys]
    Shape s = *shape_of(g.value(*mask).type);
    const std::vector<int64_t> whole{a.batch, a.heads, a.rows, a.keys};
    if (s.sizes.size() > 4) return std::nullopt;
    s.sizes.insert(s.sizes.begin(), 4 - s.sizes.size(), 1);
    s.strides.insert(s.strides.begin(), 4 - s.strides.size(), 0);
    for (size_t d = 0; d < 4; ++d) {
      if (s.sizes[d] != whole[d] && s.sizes[d] != 1) return std::nullopt;
      if (s.sizes[d] == 1) s.strides[d] = 0;
    }
    a.mask = operand(*mask, s, false);
  }
  a.out = operand(n.results[0], os, true);
  a.logsumexp = operand(n.results[1], ls, true);
  a.results = n.results;
  return a;
}

}  // namespace cutaway::codegen
