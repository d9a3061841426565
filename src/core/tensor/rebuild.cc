#include "core/tensor/rebuild.h"

#include <sys/mman.h>

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <cstring>

#include "core/tensor/convert.h"

namespace cutaway::tensor {
namespace {

bool has_key(const at::Tensor& t, c10::DispatchKey key) { return t.key_set().has(key); }

// The end of a history that was not recorded. Gradients stop here.
struct RecordedPast : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
  std::string name() const override { return "RecordedPast"; }
};

// Torch 2.13 counts references of nodes intrusively, 2.11 does not: whichever pointer an edge holds.
template <class Pointer, class Past> Pointer make_past() {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) return std::make_shared<Past>();
  else return c10::make_intrusive<Past>();
}

}  // namespace

std::optional<base::Error> why_not_strided(const at::Tensor& t) {
  if (!t.defined()) return base::Error{.what = "an undefined tensor cannot be stored"};
  if (t.is_quantized())
    return base::Error{.what = "a quantized tensor (" + std::string(c10::toString(t.scalar_type())) + ") cannot be stored",
                       .because = "its scale and zero point are not part of a tensor's record", .hint = "store x.dequantize() or x.int_repr()"};
  if (t.is_nested()) return base::Error{.what = "a nested tensor cannot be stored", .because = "it has no single size", .hint = "store the tensors of x.unbind() one by one"};
  if (t.layout() != at::kStrided) {
    const std::string layout = t.layout() == at::kMkldnn ? "mkldnn" : "sparse (" + std::string(ir::layout_name(from_aten(t.layout()))) + ")";
    return base::Error{.what = "a tensor of layout " + layout + " cannot be stored", .because = "only strided tensors have one storage", .hint = "store x.to_dense()"};
  }
  // Functionalization and functorch's transforms wrap a tensor whose data is elsewhere.
  for (c10::DispatchKey key : {c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper})
    if (has_key(t, key))
      return base::Error{.what = "a tensor inside of a transform (" + std::string(c10::toString(key)) + ") cannot be stored", .because = "it is a wrapper around the tensor with the data"};
  return std::nullopt;
}

std::optional<base::Error> why_no_data(const at::Tensor& t) {
  if (t.is_meta()) return base::Error{.what = "a meta tensor has no data", .hint = "store its metadata alone, or materialise it first"};
  if (has_key(t, c10::DispatchKey::Fake)) return base::Error{.what = "a fake tensor has no data", .hint = "store its metadata alone, or run on real tensors"};
  if (has_key(t, c10::DispatchKey::Python))
    return base::Error{.what = "a tensor subclass with operators of its own (torch's FakeTensor is one) has no readable storage", .hint = "store the plain tensors that it holds"};
  if (!t.has_storage()) return base::Error{.what = "a tensor on " + t.device().str() + " without a storage has no readable data", .hint = "copy it to the cpu first"};
  return std::nullopt;
}

std::optional<uint64_t> bytes_needed(const bundle::TensorRecord& r) {
  if (r.storage_offset < 0 || r.sizes.size() != r.strides.size()) return std::nullopt;
  bool empty = false;
  for (int64_t s : r.sizes) {
    if (s < 0) return std::nullopt;
    empty |= s == 0;
  }
  if (empty) return 0;
  uint64_t last = static_cast<uint64_t>(r.storage_offset);
  for (size_t i = 0; i < r.sizes.size(); ++i) {
    uint64_t step = 0;
    if (r.strides[i] < 0) return std::nullopt;
    if (__builtin_mul_overflow(static_cast<uint64_t>(r.sizes[i] - 1), static_cast<uint64_t>(r.strides[i]), &step)) return std::nullopt;
    if (__builtin_add_overflow(last, step, &last)) return std::nullopt;
  }
  uint64_t bytes = 0;
  if (__builtin_add_overflow(last, uint64_t{1}, &last)) return std::nullopt;
  if (__builtin_mul_overflow(last, static_cast<uint64_t>(ir::dtype_bytes(r.dtype)), &bytes) || bytes > INT64_MAX) return std::nullopt;
  return bytes;
}

at::Storage empty_host_storage(size_t bytes) {
  at::Storage storage(at::Storage::use_byte_size_t{}, static_cast<int64_t>(bytes), c10::GetCPUAllocator(), /*resizable=*/true);
  // Fresh memory is filled at the speed of its page faults: large ones are asked for in large pages. Advice only, so it may fail.
  constexpr size_t kLarge = size_t{8} << 20, kPage = size_t{2} << 20;
  if (bytes >= kLarge) {
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(storage.data()) + kPage - 1) / kPage * kPage;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(storage.data()) + bytes) / kPage * kPage;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  return storage;
}

namespace {
// The whole of a storage as bytes.
at::Tensor bytes_of(const at::Storage& storage) {
  bundle::TensorRecord r;
  r.dtype = ir::DType::u8;
  r.sizes = {static_cast<int64_t>(storage.nbytes())};
  r.strides = {1};
  return view_storage(storage, r);
}
}  // namespace

HostBytes host_bytes(const at::Storage& storage) {
  HostBytes out;
  out.size = storage.nbytes();
  if (storage.device().is_cpu()) {
    out.data = storage.data();
    return out;
  }
  out.copy = bytes_of(storage).cpu();
  out.data = out.copy.const_data_ptr();
  return out;
}

at::Storage make_storage(const void* data, size_t bytes, const at::Device& device) {
  at::Storage host = empty_host_storage(bytes);
  if (bytes) std::memcpy(host.mutable_data(), data, bytes);
  if (device.is_cpu()) return host;
  return bytes_of(host).to(device).storage();
}

at::Tensor view_storage(const at::Storage& storage, const bundle::TensorRecord& r) {
  const at::ScalarType dtype = to_aten(r.dtype);
  const c10::DispatchKey key = c10::computeDispatchKey(dtype, at::kStrided, storage.device());
  at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(at::Storage(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(r.sizes, r.strides, r.storage_offset);
  if (r.is_conj) t._set_conj(true);
  if (r.is_neg) t._set_neg(true);
  return t;
}

at::Tensor make_zero(const bundle::TensorRecord& r, const at::Device& device) {
  at::Tensor t = at::_efficientzerotensor(r.sizes, at::TensorOptions().dtype(to_aten(r.dtype)).device(device));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(r.sizes, r.strides, r.storage_offset);
  return t;
}

void set_gradness(at::Tensor& t, bool requires_grad, bool is_leaf) {
  if (!requires_grad) return;
  if (is_leaf) {
    t.set_requires_grad(true);
    return;
  }
  torch::autograd::create_gradient_edge(t, make_past<decltype(torch::autograd::Edge::function), RecordedPast>());
}

}  // namespace cutaway::tensor
