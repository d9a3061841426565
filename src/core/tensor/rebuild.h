// Tensors around storages: which tensors can be taken apart into a storage and a record, and how one is put together again.
// Goes around the dispatcher wherever it can, so that an active recorder, fake mode or functionalization sees none of it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/bundle/tensor_record.h"

namespace cutaway::tensor {

/// Why this tensor has no dense storage that a record could describe: quantized, sparse, nested, mkldnn, a wrapper. Null: it has.
std::optional<base::Error> why_not_strided(const at::Tensor&);
/// Why its bytes cannot be read although it is strided: fake, meta, a subclass with operators of its own, freed. Null: they can.
std::optional<base::Error> why_no_data(const at::Tensor&);

/// Bytes from the start of the storage to the end of the last element. Empty: a negative number, or no 64-bit number.
std::optional<uint64_t> bytes_needed(const bundle::TensorRecord&);

/// Bytes of a storage in host memory, without a copy where they are there already.
struct HostBytes {
  const void* data = nullptr;
  size_t size = 0;
  at::Tensor copy;   ///< owns the bytes of device memory
};
HostBytes host_bytes(const at::Storage&);
/// A storage on `device` with these bytes, copied once. Throws c10::Error when the device is absent or memory runs out.
at::Storage make_storage(const void* data, size_t bytes, const at::Device& device);
/// Uninitialised, in host memory.
at::Storage empty_host_storage(size_t bytes);

/// A tensor that looks at `storage` as the record says (dtype, sizes, strides, offset, conj and neg bits; the device is the
/// storage's). No autograd state. The caller has checked bytes_needed.
at::Tensor view_storage(const at::Storage&, const bundle::TensorRecord&);
/// Torch's zero tensor, which has no memory, as the record says.
at::Tensor make_zero(const bundle::TensorRecord&, const at::Device&);
/// Makes a fresh tensor require a gradient. One that was not a leaf becomes one whose history is past: it requires a gradient,
/// is not a leaf, can be changed in place as the original could, and gradients that reach it end there.
void set_gradness(at::Tensor&, bool requires_grad, bool is_leaf);

}  // namespace cutaway::tensor
