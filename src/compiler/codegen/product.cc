#include "compiler/codegen/product.h"

#include <algorithm>

namespace cutaway::codegen {
namespace {

class Finder {
 public:
  Finder(const ir::Graph& graph, const Origins& from, const ir::Node& node) : graph_(graph), from_(from), node_(node) {}

  std::optional<Product> run(std::string& reason) {
    if (node_.target == "aten.convolution") return convolution(reason);
    const bool has_bias = node_.target == "aten.addmm", is_batch = node_.target == "aten.bmm";
    if (node_.target != "aten.mm" && !has_bias && !is_batch) return std::nullopt;
    reason = "a product with factors";
    if (!node_.kwargs.empty() || node_.args.size() != (has_bias ? 3 : 2) || node_.results.size() != 1) return std::nullopt;
    for (const ir::Argument& a : node_.args)
      if (!a.as<ir::ValueRef>()) return std::nullopt;
    const ir::ValueId left = id(has_bias ? 1 : 0), right = id(has_bias ? 2 : 1), result = node_.results[0];
    product_.dtype = type(result).dtype;
    reason = "a product of another dtype than float32 and float64";
    if (product_.dtype != ir::DType::f32 && product_.dtype != ir::DType::f64) return std::nullopt;
    reason = "operands that are not plain tensors of one dtype";
    if (type(result).device.type != "cpu") { reason = "a product of another device"; return std::nullopt; }
    for (const ir::Argument& a : node_.args)
      if (const ir::ValueId v = a.as<ir::ValueRef>()->id; !shape_of(graph_.value(v).type) || type(v).device.type != "cpu" || type(v).dtype != product_.dtype) return std::nullopt;
    const Shape x = *shape_of(graph_.value(left).type), y = *shape_of(graph_.value(right).type);
    const auto z = shape_of(graph_.value(result).type);
    const size_t rank = is_batch ? 3 : 2;
    if (!z || x.sizes.size() != rank || y.sizes.size() != rank || z->sizes.size() != rank) return std::nullopt;
    reason = "no elements";
    if (x.numel() == 0 || y.numel() == 0) return std::nullopt;
    product_.batch = is_batch ? x.sizes[0] : 1;
    product_.m = x.sizes[rank - 2];
    product_.k = x.sizes[rank - 1];
    product_.n = y.sizes[rank - 1];
    reason = "a result that is not laid out row after row";
    if (product_.n > 1 && z->strides[rank - 1] != 1) return std::nullopt;
    product_.a = operand(left, x, false);
    product_.b = operand(right, y, false);
    if (has_bias) {
      const Shape s = *shape_of(graph_.value(id(0)).type);
      reason = "a bias that is not one row";
      if (s.sizes != std::vector<int64_t>{product_.n} || (s.strides[0] != 1 && product_.n > 1)) return std::nullopt;
      product_.bias = Product::Operand{buffer(id(0), false), from_.root[id(0)].offset, 0, 0, 1};
    }
    product_.c = operand(result, *z, true);
    return std::move(product_);
  }

 private:
  std::optional<Product> convolution(std::string& reason) {
    reason = "operands that are not plain tensors of one dtype";
    if (!node_.kwargs.empty() || node_.args.size() != 9 || node_.results.size() != 1 || !node_.args[0].as<ir::ValueRef>() || !node_.args[1].as<ir::ValueRef>()) return std::nullopt;
    const ir::ValueId x = id(0), weight = id(1), result = node_.results[0];
    const bool has_bias = node_.args[2].as<ir::ValueRef>() != nullptr;
    if (!has_bias && !node_.args[2].is_none()) return std::nullopt;
    std::vector<ir::ValueId> all{x, weight, result};
    if (has_bias) all.push_back(id(2));
    product_.dtype = graph_.value(result).type.is_tensor() ? type(result).dtype : ir::DType::i64;
    for (ir::ValueId v : all)
      if (!shape_of(graph_.value(v).type) || type(v).device.type != "cpu" || type(v).dtype != product_.dtype) return std::nullopt;
    reason = "a convolution of another dtype than float32 and float64";
    if (product_.dtype != ir::DType::f32 && product_.dtype != ir::DType::f64) return std::nullopt;
    product_.window = window_of(graph_, x, weight, result, &node_.args[3], reason);
    if (!product_.window) return std::nullopt;
    const Window& w = *product_.window;
    const Shape sizes = *shape_of(graph_.value(weight).type);
    product_.batch = shape_of(graph_.value(x).type)->sizes[0];
    product_.m = sizes.sizes[0];
    product_.k = w.channels * w.size[0] * w.size[1];
    product_.n = w.out_height * w.out_width;
    product_.a = {buffer(weight, false), from_.root[weight].offset, 0, product_.k, 1};
    product_.b = {buffer(x, false), from_.root[x].offset, w.x_strides[0], 0, 0};
    if (has_bias) {
      const Shape s = *shape_of(graph_.value(id(2)).type);
      reason = "a bias that is not one row";
      if (s.sizes != std::vector<int64_t>{product_.m} || (s.strides[0] != 1 && product_.m > 1)) return std::nullopt;
      product_.bias = Product::Operand{buffer(id(2), false), from_.root[id(2)].offset, 0, 0, 1};
    }
    product_.c = {buffer(result, true), 0, product_.m * product_.n, product_.n, 1};
    return std::move(product_);
  }
  ir::ValueId id(size_t position) const { return node_.args[position].as<ir::ValueRef>()->id; }
  const ir::TensorType& type(ir::ValueId v) const { return graph_.value(v).type.tensor; }
  uint32_t buffer(ir::ValueId v, bool is_written) {
    const ir::ValueId root = is_written ? v : from_.root[v].value;
    for (size_t i = 0; i < product_.buffers.size(); ++i)
      if (product_.buffers[i].value == root) return static_cast<uint32_t>(i);
    product_.buffers.push_back({root, graph_.value(root).name, product_.dtype, is_written});
    return static_cast<uint32_t>(product_.buffers.size() - 1);
  }
  Product::Operand operand(ir::ValueId v, const Shape& s, bool is_written) {
    const size_t rank = s.sizes.size();
    return {buffer(v, is_written), is_written ? 0 : from_.root[v].offset, rank == 3 ? s.strides[0] : 0, s.strides[rank - 2], s.strides[rank - 1]};
  }

  const ir::Graph& graph_;
  const Origins& from_;
  const ir::Node& node_;
  Product product_;
};

}  // namespace

std::string Product::text() const {
  if (window) {
    const std::string outer = " x [" + std::to_string(window->channels) + ", " + std::to_string(window->height) + ", " + std::to_string(window->width) + "] with [";
    return name + ": convolution, " + std::to_string(batch) + outer + std::to_string(m) + ", " + std::to_string(window->channels) + ", " + std::to_string(window->size[0]) + ", " + std::to_string(window->size[1]) + "] " + std::string(ir::dtype_name(dtype)) +
           (bias ? " and a bias" : "") + (epilogue ? " and an epilogue" : "");
  }
  const std::string times = batch > 1 ? std::to_string(batch) + " of " : "";
  return name + ": " + times + "[" + std::to_string(m) + ", " + std::to_string(k) + "] x [" + std::to_string(k) + ", " + std::to_string(n) + "] " + std::string(ir::dtype_name(dtype)) + (bias ? " and a bias" : "") + (epilogue ? " and an epilogue" : "");
}

std::optional<Product> product_of(const ir::Graph& graph, const Origins& from, const ir::Node& node, std::string* reason) {
  std::string why;
  auto found = Finder(graph, from, node).run(why);
  if (!found && reason) *reason = why;
  return found;
}

}  // namespace cutaway::codegen
