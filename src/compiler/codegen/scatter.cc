#include "compiler/codegen/scatter.h"

#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace scattering {   // its helpers have names that other files of the folder use too
namespace {

constexpr size_t kMostDims = 8;

const ir::Argument* argument(const ir::Node& n, size_t position, std::string_view name) {
  const ir::Argument* found = position < n.args.size() ? &n.args[position] : nullptr;
  for (const auto& [key, a] : n.kwargs)
    if (key == name) found = &a;
  return found && found->is_none() ? nullptr : found;
}

/// A constant tensor of zeros, which need not be made.
bool is_zero(const ir::Graph& g, const Origins& from, ir::ValueId id) {
  const int64_t at = from.producer[from.root[id].value].node;
  if (at < 0) return false;
  const ir::Node& n = g.body.nodes[static_cast<size_t>(at)];
  if (n.target == "aten.zeros" || n.target == "aten.zeros_like" || n.target == "aten.new_zeros") return true;
  if (n.target != "aten.full" || n.args.size() < 2) return false;
  return (n.args[1].as<int64_t>() && *n.args[1].as<int64_t>() == 0) || (n.args[1].as<double>() && *n.args[1].as<double>() == 0);
}

}  // namespace
}  // namespace scattering

std::string Scatter::text() const {
  std::string out = name + ": ";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? " x " : "") + std::to_string(sizes[i]);
  return out + " into " + std::to_string(elements) + " " + std::string(ir::dtype_name(dtype));
}

std::optional<Scatter> scatter_of(const ir::Graph& g, const Origins& from, const ir::Node& n) {
  using namespace scattering;
  const bool is_embedding = n.target == "aten.embedding_dense_backward", is_put = n.target == "aten.index_put", is_add = n.target == "aten.index_add", is_scatter = n.target == "aten.scatter_add";
  if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || (!is_embedding && !is_put && !is_add && !is_scatter)) return std::nullopt;
  const auto tensor = [&](const ir::Argument* a) -> std::optional<ir::ValueId> {
    if (!a || !a->as<ir::ValueRef>() || !shape_of(g.value(a->as<ir::ValueRef>()->id).type)) return std::nullopt;
    return a->as<ir::ValueRef>()->id;
  };
  const ir::Type& type = g.value(n.results[0]).type;
  const auto out = shape_of(type);
  if (!out || type.tensor.device.type != "cpu" || !type.tensor.is_contiguous() || out->numel() == 0 || (type.tensor.dtype != ir::DType::f32 && type.tensor.dtype != ir::DType::f64)) return std::nullopt;
  Scatter s;
  s.dtype = type.tensor.dtype;
  s.elements = out->numel();
  std::optional<ir::ValueId> base, index, source;
  size_t dim = 0;
  if (is_embedding) {
    source = tensor(argument(n, 0, "grad_output"));
    index = tensor(argument(n, 1, "indices"));
    const ir::Argument *padding = argument(n, 3, "padding_idx"), *scale = argument(n, 4, "scale_grad_by_freq");
    if (!padding || !padding->as<int64_t>() || (scale && !(scale->as<bool>() && !*scale->as<bool>()))) return std::nullopt;
    s.skip = *padding->as<int64_t>();
  } else if (is_put) {
    base = tensor(argument(n, 0, "self"));
    source = tensor(argument(n, 2, "values"));
    const ir::Argument *list = argument(n, 1, "indices"), *accumulates = argument(n, 3, "accumulate");
    if (!base || !list || !list->as<ir::List>() || !accumulates || !accumulates->as<bool>() || !*accumulates->as<bool>()) return std::nullopt;
    const auto& items = list->as<ir::List>()->items;
    for (size_t i = 1; i < items.size(); ++i)
      if (!items[i].is_none()) return std::nullopt;
    if (!items.empty()) index = tensor(&items[0]);
    s.wraps = true;
  } else {
    base = tensor(argument(n, 0, "self"));
    index = tensor(argument(n, 2, "index"));
    source = tensor(argument(n, 3, is_add ? "source" : "src"));
    const ir::Argument *d = argument(n, 1, "dim"), *alpha = argument(n, 4, "alpha");
    if (!d || !d->as<int64_t>() || (alpha && !(alpha->as<int64_t>() && *alpha->as<int64_t>() == 1))) return std::nullopt;
    const int64_t k = *d->as<int64_t>() < 0 ? *d->as<int64_t>() + static_cast<int64_t>(out->sizes.size()) : *d->as<int64_t>();
    if (k < 0 || k >= static_cast<int64_t>(out->sizes.size())) return std::nullopt;
    dim = static_cast<size_t>(k);
  }
  if (!index || !source || out->sizes.empty() || g.value(*index).type.tensor.dtype != ir::DType::i64 || g.value(*source).type.tensor.dtype != s.dtype) return std::nullopt;
  const Shape i = *shape_of(g.value(*index).type), x = *shape_of(g.value(*source).type);
  if (i.numel() == 0 || x.numel() == 0 || i.sizes.empty()) return std::nullopt;
  if (base && (!g.value(*base).type.tensor.is_contiguous() || g.value(*base).type.tensor.dtype != s.dtype || shape_of(g.value(*base).type)->sizes != out->sizes)) return std::nullopt;
  // The space of what is added: the index's dimensions in place of `dim`.
  if (is_scatter) {
    if (i.sizes.size() != out->sizes.size() || x.sizes.size() != out->sizes.size()) return std::nullopt;
    s.sizes = i.sizes;
    s.index_strides = i.strides;
    s.source_strides = x.strides;
    s.target_strides = out->strides;
    s.target_strides[dim] = 0;
  } else {
    if (is_add && i.sizes.size() != 1) return std::nullopt;
    if ((is_put || is_embedding) && !g.value(*index).type.tensor.is_contiguous()) return std::nullopt;   // then torch's order is that of memory too
    for (size_t k = 0; k < out->sizes.size(); ++k) {
      if (k == dim) {
        s.sizes.insert(s.sizes.end(), i.sizes.begin(), i.sizes.end());
        s.index_strides.insert(s.index_strides.end(), i.strides.begin(), i.strides.end());
        s.target_strides.insert(s.target_strides.end(), i.sizes.size(), 0);
      } else {
        s.sizes.push_back(out->sizes[k]);
        s.index_strides.push_back(0);
        s.target_strides.push_back(out->strides[k]);
      }
    }
    if (x.sizes.size() > s.sizes.size()) return std::nullopt;
    s.source_strides.assign(s.sizes.size(), 0);
    for (size_t k = 0; k < x.sizes.size(); ++k) {
      const size_t place = s.sizes.size() - x.sizes.size() + k;
      if (x.sizes[k] == 1) continue;
      if (x.sizes[k] != s.sizes[place]) return std::nullopt;
      s.source_strides[place] = x.strides[k];
    }
  }
  if (s.sizes.size() > kMostDims) return std::nullopt;
  s.limit = out->sizes[dim];
  s.row = out->strides[dim];
  const auto buffer = [&](ir::ValueId id, bool is_written) {
    const ir::ValueId root = is_written ? id : from.root[id].value;
    for (uint32_t b = 0; b < s.buffers.size(); ++b)
      if (s.buffers[b].value == root) return b;
    s.buffers.push_back({root, g.value(root).name, g.value(root).type.tensor.dtype, is_written});
    return static_cast<uint32_t>(s.buffers.size() - 1);
  };
  s.index = buffer(*index, false);
  s.source = buffer(*source, false);
  s.index_offset = from.root[*index].offset;
  s.source_offset = from.root[*source].offset;
  if (base && !is_zero(g, from, *base)) {
    s.base = buffer(*base, false);
    s.base_offset = from.root[*base].offset;
  }
  s.target = buffer(n.results[0], true);
  return s;
}

}  // namespace cutaway::codegen
