#include "compiler/codegen/cuda_product.h"

#include <algorithm>
#include <map>

#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kTileSide = 16, kMostSteps = 256, kMostRows = 512, kMostWork = int64_t{40} << 20;   ///< multiplications, beyond which a library is faster

struct Side { ir::ValueId root = ir::kNoValue; int64_t offset = 0, row = 0; };

/// An operand whose rows are walked through with steps of 1.
std::optional<Side> side_of(const ir::Graph& g, const Origins& from, ir::ValueId id, size_t row, size_t step) {
  const auto s = shape_of(g.value(id).type);
  const ir::ValueId root = from.root[id].value;
  const ir::TensorType& t = g.value(id).type.tensor;
  if (!s || s->sizes.size() != 2 || t.dtype != ir::DType::f32 || g.value(root).type.tensor.dtype != ir::DType::f32 || !shape_of(g.value(root).type)) return std::nullopt;
  if (s->strides[step] != 1 || s->strides[row] % 4 != 0 || from.root[id].offset % 4 != 0 || s->strides[row] < s->sizes[step]) return std::nullopt;
  if (s->strides[row] * s->sizes[row] > (int64_t{1} << 30)) return std::nullopt;
  return Side{root, from.root[id].offset, s->strides[row]};
}

}  // namespace

std::optional<CardProduct> card_product_of(const ir::Graph& g, const Origins& from, const ir::Node& n, std::string name) {
  const bool has_bias = n.target == "aten.addmm";
  if (n.kind != ir::Node::Kind::op || (!has_bias && n.target != "aten.mm") || !n.kwargs.empty() || n.args.size() != (has_bias ? 3 : 2) || n.results.size() != 1) return std::nullopt;
  for (const ir::Argument& a : n.args)
    if (!a.as<ir::ValueRef>() || g.value(a.as<ir::ValueRef>()->id).type.tensor.device.type != "cuda") return std::nullopt;
  const ir::ValueId left = n.args[has_bias ? 1 : 0].as<ir::ValueRef>()->id, right = n.args[has_bias ? 2 : 1].as<ir::ValueRef>()->id;
  const ir::TensorType& result = g.value(n.results[0]).type.tensor;
  if (result.dtype != ir::DType::f32 || result.device.type != "cuda" || !result.is_contiguous()) return std::nullopt;
  const auto a = side_of(g, from, left, 0, 1), b = side_of(g, from, right, 1, 0);
  const auto x = shape_of(g.value(left).type), y = shape_of(g.value(right).type);
  if (!a || !b || !x || !y || !shape_of(g.value(n.results[0]).type)) return std::nullopt;
  const int64_t m = x->sizes[0], k = x->sizes[1], columns = y->sizes[1];
  if (m < 1 || m > kMostRows || k < 16 || k % 4 != 0 || columns < 16 || columns > 8192 || m * columns * k > kMostWork) return std::nullopt;
  CardProduct p;
  p.kernel.name = std::move(name);
  p.kernel.sizes = {1};
  p.kernel.inner_dims = 1;
  p.kernel.device = result.device;
  std::map<ir::ValueId, std::string> number;
  const auto buffer = [&](ir::ValueId id, bool is_written, int64_t alignment) {
    const auto [it, is_new] = number.try_emplace(id, "b" + std::to_string(p.kernel.buffers.size()));
    if (is_new) {
      p.kernel.buffers.push_back({id, g.value(id).name, ir::DType::f32, is_written});
      p.text.launch.alignment.push_back(alignment);
    } else {
      int64_t& known = p.text.launch.alignment[static_cast<size_t>(std::stoll(it->second.substr(1)))];
      known = std::max(known, alignment);
    }
    return it->second;
  };
  const auto at = [](const std::string& b, int64_t offset) { return offset ? b + " + " + std::to_string(offset) : b; };
  const std::string one = at(buffer(a->root, false, 16), a->offset), two = at(buffer(b->root, false, 16), b->offset);
  std::string bias = "nullptr";
  if (has_bias) {
    const ir::ValueId id = n.args[0].as<ir::ValueRef>()->id, root = from.root[id].value;
    const auto s = shape_of(g.value(id).type);
    if (!s || s->sizes != std::vector<int64_t>{columns} || (columns > 1 && s->strides[0] != 1) || g.value(id).type.tensor.dtype != ir::DType::f32 || g.value(root).type.tensor.dtype != ir::DType::f32 || !shape_of(g.value(root).type)) return std::nullopt;
    bias = at(buffer(root, false, 4), from.root[id].offset);
  }
  const std::string to = buffer(n.results[0], true, 4);
  const int64_t rounds = (k + kMostSteps - 1) / kMostSteps, steps = ((k + rounds - 1) / rounds + 31) / 32 * 32;
  const auto body = [&](const std::string& function) {
    std::string s = "extern \"C\" __global__ void __launch_bounds__(256) " + function + "(";
    for (size_t i = 0; i < p.kernel.buffers.size(); ++i) s += (i ? ", " : "") + std::string(p.kernel.buffers[i].is_written ? "" : "const ") + "float* __restrict b" + std::to_string(i);
    s += ") {\n  small_product<";
    for (int64_t v : {m, columns, k, a->row, b->row, steps}) s += std::to_string(v) + ", ";
    return s + (has_bias ? "true" : "false") + ">(" + one + ", " + two + ", " + bias + ", " + to + ");\n}\n";
  };
  p.key = "product " + body("p");
  p.text.source = "// native." + p.kernel.name + ": [" + std::to_string(m) + ", " + std::to_string(k) + "] x [" + std::to_string(k) + ", " + std::to_string(columns) + "]" + (has_bias ? " and a bias" : "") + "\n" + body(p.kernel.name);
  p.text.launch.blocks = ((m + kTileSide - 1) / kTileSide) * ((columns + kTileSide - 1) / kTileSide);
  p.text.launch.threads = 256;
  return p;
}

}  // namespace cutaway::codegen
