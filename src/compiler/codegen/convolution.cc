#include "compiler/codegen/convolution.h"

#include <algorithm>

#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kFewestOutputs = 4;   ///< channels of a result: below that a tile of the product is nearly empty

std::optional<std::vector<int64_t>> whole_numbers(const ir::Argument& a) {
  std::vector<int64_t> out;
  const auto* list = a.as<ir::List>();
  if (!list) return std::nullopt;
  for (const ir::Argument& item : list->items) {
    if (!item.as<int64_t>()) return std::nullopt;
    out.push_back(*item.as<int64_t>());
  }
  return out;
}

}  // namespace

std::optional<Window> window_of(const ir::Graph& g, ir::ValueId x, ir::ValueId weight, ir::ValueId result, const ir::Argument* first, std::string& reason) {
  // first: stride, padding, dilation, transposed, output_padding, groups
  const auto step = whole_numbers(first[0]), pad = whole_numbers(first[1]), dilation = whole_numbers(first[2]);
  reason = "a convolution with groups, or a transposed one";
  if (!step || !pad || !dilation || !first[3].as<bool>() || *first[3].as<bool>() || !first[5].as<int64_t>() || *first[5].as<int64_t>() != 1) return std::nullopt;
  const auto xs = shape_of(g.value(x).type), ws = shape_of(g.value(weight).type), ys = shape_of(g.value(result).type);
  reason = "a convolution of other than one or two dimensions";
  if (!xs || !ws || !ys) return std::nullopt;
  const size_t rank = xs->sizes.size(), dims = rank - 2;
  if ((rank != 3 && rank != 4) || ws->sizes.size() != rank || ys->sizes.size() != rank || step->size() != dims || pad->size() != dims || dilation->size() != dims) return std::nullopt;
  reason = "no elements";
  if (xs->numel() == 0 || ws->numel() == 0 || ys->numel() == 0) return std::nullopt;
  reason = "a weight or a result that is not laid out row after row";
  if (!g.value(weight).type.tensor.is_contiguous() || !g.value(result).type.tensor.is_contiguous()) return std::nullopt;
  reason = "few channels";
  if (ys->sizes[1] < kFewestOutputs) return std::nullopt;
  reason = "sizes that do not fit";
  if (xs->sizes[1] != ws->sizes[1] || ys->sizes[1] != ws->sizes[0] || xs->sizes[0] != ys->sizes[0]) return std::nullopt;
  Window w;
  w.channels = xs->sizes[1];
  w.x_strides[0] = xs->strides[0];
  w.x_strides[1] = xs->strides[1];
  int64_t in[2] = {1, 1}, out[2] = {1, 1};
  for (size_t d = 0; d < dims; ++d) {
    const size_t to = d + 2 - dims;
    w.size[to] = ws->sizes[d + 2];
    w.step[to] = (*step)[d];
    w.pad[to] = (*pad)[d];
    w.dilation[to] = (*dilation)[d];
    w.x_strides[to + 2] = xs->strides[d + 2];
    in[to] = xs->sizes[d + 2];
    out[to] = ys->sizes[d + 2];
    if (w.step[to] <= 0 || w.dilation[to] <= 0 || w.pad[to] < 0) return std::nullopt;
    const int64_t reach = in[to] + 2 * w.pad[to] - w.dilation[to] * (w.size[to] - 1) - 1;
    if (reach < 0 || reach / w.step[to] + 1 != out[to]) return std::nullopt;
  }
  w.height = in[0];
  w.width = in[1];
  w.out_height = out[0];
  w.out_width = out[1];
  return w;
}

std::string ConvGradient::text() const {
  return name + ": gradients of a convolution, " + std::to_string(batch) + " x [" + std::to_string(window.channels) + ", " + std::to_string(window.height) + ", " + std::to_string(window.width) + "] with [" + std::to_string(outputs) + ", " +
         std::to_string(window.channels) + ", " + std::to_string(window.size[0]) + ", " + std::to_string(window.size[1]) + "] " + std::string(ir::dtype_name(dtype));
}

std::optional<ConvGradient> conv_gradient_of(const ir::Graph& g, const Origins& from, const ir::Node& n) {
  if (n.kind != ir::Node::Kind::op || n.target != "aten.convolution_backward" || n.args.size() != 11 || !n.kwargs.empty() || n.results.size() != 3) return std::nullopt;
  for (size_t i = 0; i < 3; ++i)
    if (!n.args[i].as<ir::ValueRef>()) return std::nullopt;
  const ir::ValueId grad = n.args[0].as<ir::ValueRef>()->id, x = n.args[1].as<ir::ValueRef>()->id, weight = n.args[2].as<ir::ValueRef>()->id;
  ConvGradient c;
  c.dtype = g.value(grad).type.is_tensor() ? g.value(grad).type.tensor.dtype : ir::DType::i64;
  if (c.dtype != ir::DType::f32 && c.dtype != ir::DType::f64) return std::nullopt;
  const auto is_ours = [&](ir::ValueId id) {
    const ir::Type& t = g.value(id).type;
    return shape_of(t) && t.tensor.device.type == "cpu" && t.tensor.dtype == c.dtype;
  };
  if (!is_ours(grad) || !is_ours(x) || !is_ours(weight)) return std::nullopt;
  std::string reason;
  const auto window = window_of(g, x, weight, grad, &n.args[4], reason);
  if (!window) return std::nullopt;
  c.window = *window;
  c.batch = shape_of(g.value(x).type)->sizes[0];
  c.outputs = shape_of(g.value(weight).type)->sizes[0];
  const auto buffer = [&](ir::ValueId id, bool is_written) {
    const ir::ValueId root = is_written ? id : from.root[id].value;
    for (uint32_t b = 0; b < c.buffers.size(); ++b)
      if (c.buffers[b].value == root) return b;
    c.buffers.push_back({root, g.value(root).name, c.dtype, is_written});
    return static_cast<uint32_t>(c.buffers.size() - 1);
  };
  c.grad = {buffer(grad, false), from.root[grad].offset};
  c.x = {buffer(x, false), from.root[x].offset};
  c.weight = {buffer(weight, false), from.root[weight].offset};
  std::optional<uint32_t>* const places[] = {&c.grad_x, &c.grad_weight, &c.grad_bias};
  for (size_t i = 0; i < 3; ++i) {
    const ir::ValueId r = n.results[i];
    if (!g.value(r).type.is_tensor()) continue;
    if (!is_ours(r) || !g.value(r).type.tensor.is_contiguous()) return std::nullopt;
    *places[i] = buffer(r, true);
    c.results.push_back(r);
  }
  if (c.results.empty()) return std::nullopt;
  return c;
}

}  // namespace cutaway::codegen
