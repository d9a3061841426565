// Which graphs can be recorded: a table of operators that launch on the current stream and ask the host for nothing.
#include <algorithm>
#include <set>
#include <string_view>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"
#include "compiler/native/cuda_graph.h"
#include "core/ir/edit.h"

namespace cutaway::native {
namespace {

/// Operators without a rule whose CUDA kernels take everything they need from memory and arguments. What is not here runs by single launches.
const std::set<std::string_view>& known() {
  static const std::set<std::string_view> kNames = {
      "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "_addmm_activation", "linear", "matmul",
      "convolution", "convolution_backward", "_convolution", "cudnn_convolution",
      "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit.no_stats",
      "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "_batch_norm_with_update_functional", "batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward",
      "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data",
      "embedding", "embedding_dense_backward", "native_dropout", "native_dropout_backward",
      "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward",
      "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward", "_scaled_dot_product_attention_math",
      "nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss", "mse_loss_backward", "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward", "binary_cross_entropy", "binary_cross_entropy_backward",
      "cat", "stack", "constant_pad_nd", "reflection_pad2d", "replication_pad2d", "roll", "flip", "tril", "triu", "slice_backward", "select_backward", "slice_scatter", "select_scatter", "diagonal_backward", "diagonal_scatter", "as_strided_scatter",
      "index_select", "gather", "scatter.src", "scatter.value", "scatter_add", "index_add", "index.Tensor", "index_put", "_unsafe_index.Tensor", "_unsafe_index_put", "take",
      "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "avg_pool2d", "avg_pool2d_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "adaptive_max_pool2d", "avg_pool3d", "max_pool3d_with_indices",
      "upsample_nearest2d", "upsample_nearest2d.vec", "upsample_nearest2d_backward", "upsample_bilinear2d", "upsample_bilinear2d.vec", "upsample_bilinear2d_backward", "pixel_shuffle", "pixel_unshuffle",
      "cumsum", "cumprod", "topk", "sort", "sort.stable", "argmax", "argmin", "max.dim", "min.dim", "prod", "prod.dim_int", "var.correction", "var_mean.correction", "std.correction", "linalg_vector_norm", "logsumexp", "norm.ScalarOpt_dim",
      "arange", "arange.start", "arange.start_step", "linspace", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "empty.memory_format", "empty_like", "empty_strided", "new_empty", "new_full", "new_zeros", "new_ones", "new_empty_strided", "scalar_tensor", "fill.Scalar", "eye", "eye.m",
      "copy", "_to_copy", "clone", "lift_fresh_copy", "contiguous",
      "expand", "view", "_unsafe_view", "reshape", "permute", "transpose.int", "t", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "select.int", "slice.Tensor", "split.Tensor", "split_with_sizes", "unbind.int", "as_strided", "alias", "detach", "unfold", "diagonal", "view_as_real", "view_as_complex", "repeat",
      "bernoulli", "bernoulli.p", "rand", "randn", "rand_like", "randn_like", "normal_functional", "uniform", "hardtanh", "hardtanh_backward", "elu", "elu_backward", "leaky_relu_backward", "hardswish", "hardswish_backward", "hardsigmoid", "hardsigmoid_backward", "softplus", "softplus_backward", "mish", "log_sigmoid_forward", "log_sigmoid_backward", "glu", "glu_backward", "_prelu_kernel", "_prelu_kernel_backward",
      "pow.Tensor_Tensor", "pow.Scalar", "remainder.Tensor", "remainder.Scalar", "fmod.Tensor", "fmod.Scalar", "div.Tensor_mode", "div.Scalar_mode", "floor_divide", "clamp.Tensor", "isinf", "lerp.Tensor", "lerp.Scalar", "mul.Tensor", "nan_to_num", "sum", "mean", "_fused_adam", "_fused_adamw", "complex", "polar",
  };
  return kNames;
}

bool is_constant(const ir::Node& n) {
  bool uses = false;
  ir::for_each_use(n, [&](ir::ValueId) { uses = true; });
  return !uses;
}

class Checker {
 public:
  explicit Checker(const ir::Graph& g) : g_(g) {}

  std::string run() {
    for (const ir::Input& in : g_.inputs) {
      const ir::Type& t = g_.value(in.value).type;
      if (!t.is_tensor()) return "an input that is no tensor";
      if (t.tensor.device.type != "cuda") return "an input on " + t.tensor.device.text();
      if (!device_) device_ = t.tensor.device;
      if (*device_ != t.tensor.device) return "inputs on several devices";
      for (const std::vector<ir::Dim>* dims : {&t.tensor.sizes, &t.tensor.strides})
        for (const ir::Dim& d : *dims)
          if (!d.number()) return "sizes that are not numbers";
    }
    if (!device_) return "no inputs on a CUDA device";
    for (const ir::Argument& a : g_.body.outputs)
      if (!a.as<ir::ValueRef>() && !a.is_none()) return "an output that is no tensor";
    if (std::string why = block(g_.body); !why.empty()) return why;
    return launches_ ? "" : "nothing is launched";
  }

 private:
  std::string block(const ir::Block& b) {
    for (const ir::Node& n : b.nodes) {
      if (n.kind == ir::Node::Kind::call && n.target.starts_with("native.")) {
        for (const ir::Block& region : n.regions)
          if (std::string why = block(region); !why.empty()) return why;
        continue;
      }
      if (n.kind != ir::Node::Kind::op) return n.target + " is not an operator";
      if (std::string why = node(n); !why.empty()) return why;
      launches_ = launches_ || (!codegen::view_of(g_, n) && std::ranges::any_of(n.results, [&](ir::ValueId r) { return has_elements(g_.value(r).type); }));
    }
    return {};
  }

  std::string node(const ir::Node& n) {
    if (!n.target.starts_with("aten.")) return n.target + " may ask the host for something";
    if (!known().contains(std::string_view(n.target).substr(5)) && !codegen::find_rule(n.target) && !codegen::reduction_of(g_, n)) return n.target + " may ask the host for something";
    for (ir::ValueId r : n.results) {
      const ir::Type& t = g_.value(r).type;
      if (!t.is_tensor()) continue;
      for (const ir::Dim& d : t.tensor.sizes)
        if (!d.number()) return "sizes that are not numbers";
      if (t.tensor.device == *device_) continue;
      if (t.tensor.device.type == "cpu" && t.tensor.sizes.empty() && is_constant(n)) continue;   // a number: the same in every run
      return n.target + " gives a tensor on " + t.tensor.device.text();
    }
    std::string why;
    const bool is_index = n.target.find("index") != std::string::npos;
    ir::for_each_use(n, [&](ir::ValueId id) {
      const ir::Type& t = g_.value(id).type;
      if (is_index && t.is_tensor() && (t.tensor.dtype == ir::DType::boolean || t.tensor.dtype == ir::DType::u8)) why = n.target + " with a mask as its index asks the host how many there are";
      if (n.target == "aten._to_copy" && t.is_tensor() && t.tensor.device.type == "cpu") why = "a copy from the processor";
    });
    if (!why.empty()) return why;
    const auto is_own = [&](const ir::Argument& a) { const auto* name = a.as<ir::GeneratorName>(); return name && name->name != "default" && name->name != device_->text(); };
    for (const ir::Argument& a : n.args)
      if (is_own(a)) return n.target + " draws from a generator of the program's own";
    for (const auto& [key, a] : n.kwargs)
      if (is_own(a)) return n.target + " draws from a generator of the program's own";
    return {};
  }

  static bool has_elements(const ir::Type& t) {
    return t.is_tensor() && t.tensor.device.type == "cuda" && std::ranges::none_of(t.tensor.sizes, [](const ir::Dim& d) { return d.number() == 0; });
  }

  const ir::Graph& g_;
  std::optional<ir::Device> device_;
  bool launches_ = false;
};

}  // namespace

std::string why_not_recorded(const ir::Graph& g) { return Checker(g).run(); }

}  // namespace cutaway::native
