#include "core/trace/kernel_errors.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/fakes/memo_key.h"
#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {
namespace {

// What looks at no value, besides pointwise operators and reductions, which have a tag. One that is missing here costs a graph, no more.
constexpr std::string_view kBlindToValues[] = {
    "_to_copy", "_trilinear", "_unsafe_view", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "addbmm", "addmm",
    "addmv", "addr", "argsort", "avg_pool1d", "avg_pool2d", "avg_pool3d", "baddbmm", "batch_norm", "bilinear", "bmm", "cat", "channel_shuffle", "chunk", "column_stack", "concat",
    "constant_pad_nd", "contiguous", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "copy", "copy_", "cross", "cummax", "cummin",
    "cumprod", "cumsum", "diff", "dot", "dropout", "dropout_", "dstack", "einsum", "empty_like", "feature_dropout", "fill", "fill_", "flip", "full_like", "glu", "group_norm", "gru",
    "hardswish", "hstack", "instance_norm", "kron", "l1_loss", "layer_norm", "linear", "log_sigmoid", "log_softmax", "logcumsumexp", "lstm", "masked_fill_", "matmul", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "mm", "mse_loss", "multiply", "mv", "native_batch_norm", "native_dropout", "native_group_norm",
    "native_layer_norm", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "outer", "pad", "pixel_shuffle", "pixel_unshuffle", "prelu", "rand", "rand_like", "randn",
    "randn_like", "repeat", "reshape", "rms_norm", "rnn_relu", "rnn_tanh", "roll", "rot90", "scaled_dot_product_attention", "smooth_l1_loss", "softmax", "sort", "stack", "subtract",
    "tensordot", "tile", "to", "topk", "tril", "triu", "type_as", "unfold", "upsample_bicubic2d", "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_trilinear3d", "vdot", "vstack", "zero", "zero_", "zeros_like"};
static_assert(std::is_sorted(std::begin(kBlindToValues), std::end(kBlindToValues)));

bool is_elementwise(const c10::OperatorHandle& op, const OperatorInfo& info) {
  const auto has_tag = [](const c10::OperatorHandle& o) { return o.hasTag(at::Tag::pointwise); };
  if (has_tag(op)) return true;
  if (!info.is_mutable || !info.value_name.ends_with('_')) return false;
  const auto fresh = c10::Dispatcher::singleton().findSchema({info.name.name.substr(0, info.name.name.size() - 1), info.name.overload_name});   // some have the tag alone
  return fresh && has_tag(*fresh);
}

template <class F> void each_tensor(const c10::IValue& v, F&& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) f(v.toTensor());
  } else if (v.isTensorList() || v.isOptionalTensorList()) {
    for (const c10::IValue& e : v.toListRef()) each_tensor(e, f);
  }
}

template <class F> void each_tensor(const OperatorInfo& info, const torch::jit::Stack& stack, F&& f) {
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i) each_tensor(stack[i], f);
}

// The kernel itself is asked, with one element in the place of each tensor. Zeros, and numbers below: what divides integers raises then.
bool raises_on_one_element(const c10::OperatorHandle& op, const OperatorInfo& info, const torch::jit::Stack& stack, int value) {
  const c10::impl::ExcludeDispatchKeyGuard real(c10::autograd_dispatch_keyset_with_ADInplaceOrView.add(kBelowKey).add(kAboveKey).add(c10::DispatchKey::Functionalize)
                                                    .add(c10::DispatchKey::Python).add(c10::DispatchKey::PythonTLSSnapshot));
  std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> made;
  const auto one = [&](const at::Tensor& t) {
    for (const auto& [like, tensor] : made) if (like == t.unsafeGetTensorImpl()) return tensor;
    at::Tensor tensor = at::full(std::vector<int64_t>(static_cast<size_t>(t.dim()), 1), value, at::TensorOptions().dtype(t.scalar_type()).device(t.device()));
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    made.emplace_back(t.unsafeGetTensorImpl(), tensor);
    return tensor;
  };
  try {
    torch::jit::Stack arguments(stack.end() - static_cast<std::ptrdiff_t>(info.argument_count), stack.end());
    for (c10::IValue& v : arguments) {
      if (v.isTensor() && v.toTensor().defined()) {
        v = one(v.toTensor());
      } else if (v.isTensorList()) {
        auto list = v.toTensorVector();
        for (at::Tensor& t : list) t = one(t);
        v = std::move(list);
      }
    }
    op.callBoxed(&arguments);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

bool kernel_refuses(const c10::OperatorHandle& op, const OperatorInfo& info, const torch::jit::Stack& stack) {
  static thread_local std::unordered_map<std::string, bool> known;
  std::string key;
  bool is_askable = !info.is_random, is_plain = true;
  std::optional<at::ScalarType> dtype;
  KeyWriter w(key, [&](auto& key, const at::Tensor& t) {
    key.number(static_cast<uint8_t>(t.scalar_type()));
    key.number(static_cast<uint8_t>(t.unsafeGetTensorImpl()->is_wrapped_number()));
    key.number(static_cast<int8_t>(t.device().type()));
    key.number(static_cast<int32_t>(t.dim()));
    is_plain = is_plain && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble) && dtype.value_or(t.scalar_type()) == t.scalar_type();
    dtype = t.scalar_type();
    is_askable = is_askable && t.layout() == at::kStrided && !t.is_quantized() && !is_device_missing(t.device()) && !t.device().is_meta();
    return true;
  });
  w.number(reinterpret_cast<uintptr_t>(&info));
  for (const auto type : {c10::kCPU, c10::kCUDA}) w.number(static_cast<int8_t>(at::autocast::is_autocast_enabled(type) ? static_cast<int>(at::autocast::get_autocast_dtype(type)) : -1));
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i)
    if (!w.value(stack[i])) return true;
  // Every kernel of these takes the two usual dtypes; one element may be too few for its other arguments (`normalized_shape`).
  if (is_plain && std::binary_search(std::begin(kBlindToValues), std::end(kBlindToValues), std::string_view(info.value_name))) return false;
  if (!is_askable) return true;
  const auto [it, fresh] = known.emplace(std::move(key), false);
  if (fresh) it->second = raises_on_one_element(op, info, stack, 0) || raises_on_one_element(op, info, stack, -1);
  return it->second;
}

// Kernels look at ranges of memory. Whether two tensors that lie in one range have an element in common is counted out.
bool share_elements(const at::Tensor& a, const at::Tensor& b) {
  constexpr int64_t kMost = int64_t{1} << 22;
  if (a.numel() > kMost || b.numel() > kMost || a.itemsize() != b.itemsize()) return true;
  const auto for_each_place = [](const at::Tensor& t, auto&& f) {
    std::vector<int64_t> index(static_cast<size_t>(t.dim()), 0);
    int64_t place = t.storage_offset();
    for (int64_t n = t.numel(); n > 0; --n) {
      if (f(place)) return true;
      for (int64_t d = t.dim() - 1; d >= 0; --d) {
        place += t.stride(d);
        if (++index[static_cast<size_t>(d)] < t.size(d)) break;
        place -= t.stride(d) * t.size(d);
        index[static_cast<size_t>(d)] = 0;
      }
    }
    return false;
  };
  std::vector<bool> taken;
  for_each_place(a, [&](int64_t place) {
    if (taken.size() <= static_cast<size_t>(place)) taken.resize(static_cast<size_t>(place) + 1);
    taken[static_cast<size_t>(place)] = true;
    return false;
  });
  return for_each_place(b, [&](int64_t place) { return static_cast<size_t>(place) < taken.size() && taken[static_cast<size_t>(place)]; });
}

bool is_same_place(const at::Tensor& a, const at::Tensor& b) { return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides(); }

}  // namespace

KernelErrors kernel_errors(const c10::OperatorHandle& op, const OperatorInfo& info) {
  if (!info.name.name.starts_with("aten::") || info.is_data_dependent || !info.checking.empty()) return KernelErrors::of_values;
  const auto& schema = op.schema();
  const bool takes_tensors = std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& a) { return a.type()->str().find("Tensor") != std::string::npos; });
  if (!info.is_mutable && !info.is_random && (!takes_tensors || !info.returns_fresh) && info.returns_tensors) return KernelErrors::none;   // a new tensor, or a view
  if (is_elementwise(op, info) || op.hasTag(at::Tag::reduction) || info.value_name.starts_with("_foreach_")) return KernelErrors::of_dtypes;
  return std::binary_search(std::begin(kBlindToValues), std::end(kBlindToValues), std::string_view(info.value_name)) ? KernelErrors::of_dtypes : KernelErrors::of_values;
}

bool may_raise(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const OperatorInfo& info = operator_info(op);
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i)
    if (stack[i].isDevice() && is_device_missing(stack[i].toDevice())) return true;
  if (info.errors != KernelErrors::of_dtypes) return info.errors == KernelErrors::of_values;
  return writes_shared_memory(op, stack) || kernel_refuses(op, info, stack);
}

bool writes_shared_memory(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const OperatorInfo& info = operator_info(op);
  if (!info.is_mutable) return false;
  bool found = false;
  const size_t first = stack.size() - info.argument_count;
  for (size_t i = 0; i < info.argument_count && !found; ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    each_tensor(stack[first + i], [&](const at::Tensor& written) {
      found = found || at::has_internal_overlap(written) == at::MemOverlap::Yes;
      if (!written.has_storage()) return;
      each_tensor(info, stack, [&](const at::Tensor& other) {
        // Not Storage::is_alias_of, which may ask for the address of memory: fakes have none.
        const auto memory = [](const at::Tensor& t) { return t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); };
        if (found || other.is_same(written) || !other.has_storage() || memory(other) != memory(written)) return;
        found = !is_same_place(written, other) && share_elements(written, other);
      });
    });
  }
  return found;
}

}  // namespace cutaway::trace
