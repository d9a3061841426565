#include "compiler/codegen/views.h"

#include <algorithm>
#include <string_view>

namespace cutaway::codegen {
namespace {

const int64_t* integer(const ir::Node& n, size_t position) { return position < n.args.size() ? n.args[position].as<int64_t>() : nullptr; }

}  // namespace

int64_t Shape::numel() const {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

std::optional<Shape> shape_of(const ir::Type& type) {
  if (!type.is_tensor() || type.tensor.layout != ir::Layout::strided || (type.tensor.device.type != "cpu" && type.tensor.device.type != "cuda")) return std::nullopt;
  Shape s;
  for (const ir::Dim& d : type.tensor.sizes) {
    if (!d.number()) return std::nullopt;
    s.sizes.push_back(*d.number());
  }
  for (const ir::Dim& d : type.tensor.strides) {
    if (!d.number()) return std::nullopt;
    s.strides.push_back(*d.number());
  }
  return s;
}

std::optional<View> view_of(const ir::Graph& graph, const ir::Node& n) {
  if (n.kind != ir::Node::Kind::op || !n.target.starts_with("aten.") || n.args.empty() || !n.args[0].as<ir::ValueRef>()) return std::nullopt;
  const ir::ValueId base = n.args[0].as<ir::ValueRef>()->id;
  const auto from = shape_of(graph.value(base).type);
  if (!from) return std::nullopt;
  for (ir::ValueId r : n.results)
    if (!shape_of(graph.value(r).type) || graph.value(r).type.tensor.dtype != graph.value(base).type.tensor.dtype) return std::nullopt;
  const std::string_view name = std::string_view(n.target).substr(5);
  const auto rank = static_cast<int64_t>(from->sizes.size());
  View v{View::Kind::strided, base, std::vector<int64_t>(n.results.size(), 0)};
  const auto dim = [&](size_t position, int64_t otherwise) -> std::optional<size_t> {
    const int64_t* d = integer(n, position);
    if (!d && position < n.args.size()) return std::nullopt;
    int64_t k = d ? *d : otherwise;
    if (k < 0) k += rank;
    if (k < 0 || k >= rank) return std::nullopt;
    return static_cast<size_t>(k);
  };
  if (name == "view" || name == "_unsafe_view" || name == "unsqueeze" || name == "squeeze" || name == "squeeze.dim" || name == "squeeze.dims" || name == "alias" || name == "detach") {
    v.kind = View::Kind::reshape;
    return v;
  }
  if (name == "expand") {
    v.kind = View::Kind::expand;
    return v;
  }
  if (name == "t" || name == "transpose.int" || name == "permute") return v;
  if (name == "select.int") {
    const auto d = dim(1, 0);
    const int64_t* index = integer(n, 2);
    if (!d || !index) return std::nullopt;
    v.offsets[0] = (*index < 0 ? *index + from->sizes[*d] : *index) * from->strides[*d];
    return v;
  }
  if (name == "slice.Tensor") {
    const auto d = dim(1, 0);
    if (!d || (n.args.size() > 2 && !n.args[2].is_none() && !integer(n, 2)) || !n.kwargs.empty()) return std::nullopt;
    int64_t start = integer(n, 2) ? *integer(n, 2) : 0;
    if (start < 0) start += from->sizes[*d];
    start = start < 0 ? 0 : start > from->sizes[*d] ? from->sizes[*d] : start;
    v.offsets[0] = start * from->strides[*d];
    return v;
  }
  if (name == "split.Tensor" || name == "split_with_sizes" || name == "unbind.int") {
    const auto d = dim(name == "unbind.int" ? 1 : 2, 0);
    if (!d || !n.kwargs.empty()) return std::nullopt;
    int64_t at = 0;
    for (size_t i = 0; i < n.results.size(); ++i) {
      v.offsets[i] = at * from->strides[*d];
      at += name == "unbind.int" ? 1 : shape_of(graph.value(n.results[i]).type)->sizes[*d];
    }
    return v;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> dims_of(const ir::Argument* a, int64_t rank) {
  std::vector<int64_t> dims;
  const auto add = [&](const ir::Argument& x) {
    const auto* d = x.as<int64_t>();
    if (!d || *d < -rank || *d >= rank) return false;
    dims.push_back(*d < 0 ? *d + rank : *d);
    return true;
  };
  if (a && a->as<ir::List>()) {
    for (const ir::Argument& x : a->as<ir::List>()->items)
      if (!add(x)) return std::nullopt;
  } else if (a && !add(*a)) {
    return std::nullopt;
  }
  if (dims.empty())
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  std::ranges::sort(dims);
  return dims;
}

}  // namespace cutaway::codegen
