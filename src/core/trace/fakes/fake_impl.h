// The TensorImpl behind a fake tensor. Internal to core/trace.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "core/trace/fakes/constant_folding.h"
#include "core/trace/fakes/unknowns.h"
#include "core/trace/shape_rules/meta_tensor.h"

namespace cutaway::trace {

/// Of fake tensors: its data cannot be asked for. All tensors on it share what is known of it.
class FakeStorage final : public c10::StorageImpl {
 public:
  FakeStorage(int64_t bytes, c10::Device);
  bool is_unwritten = true;
  c10::Storage meta;   ///< of the meta tensors; made with the first of them
};

class FakeImpl final : public c10::TensorImpl {
 public:
  FakeImpl(c10::Storage storage, c10::Device device, caffe2::TypeMeta dtype);

  /// The meta tensor that stands for this one in shape inference. Made on first use: most results are never asked for theirs.
  const at::Tensor& meta() const;
  /// Takes over sizes, strides and offset of `meta`, and keeps it.
  void set_meta(const at::Tensor& meta);
  /// After an operator changed the meta tensor in place (resize_, t_).
  void follow_meta();
  bool differs_from_meta() const;

  /// Whether the program made it from constants alone, and nothing has written to its storage since.
  bool has_constant() const { return made_by_ && note().is_unwritten; }
  /// Its value, worked out now if need be: then a question about it has an answer. Undefined when it cannot be told.
  at::Tensor constant() const;
  uint32_t constant_depth() const { return made_by_ ? made_by_->depth() : 0; }
  void set_constant(std::shared_ptr<KnownCall> call, size_t index) { made_by_ = std::move(call); made_as_ = index; }
  void mark_written() { note().is_unwritten = false; }
  /// The call that made it had a number that is not known: it says nothing of the value.
  void forget_constant() { made_by_.reset(); }

  /// Null for most: of a tensor whose sizes follow from data.
  const UnknownSizes* unknown() const { return unknown_.get(); }
  void set_unknown(std::shared_ptr<const UnknownSizes>);

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion&, bool allow_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&&, bool allow_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>&) override;

 protected:
  // Asked of tensors with unknown sizes alone.
  at::IntArrayRef sizes_custom() const override;
  at::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  c10::SymIntArrayRef sym_sizes_custom() const override;
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  bool is_strides_like_custom(at::MemoryFormat) const override;

 private:
  void require_shown() const;
  const char* tensorimpl_type_name() const override { return "FakeTensorImpl"; }
  c10::intrusive_ptr<c10::TensorImpl> copy(const c10::VariableVersion&, bool allow_change) const;
  mutable at::Tensor meta_;
  std::shared_ptr<KnownCall> made_by_;
  size_t made_as_ = 0;
  std::shared_ptr<const UnknownSizes> unknown_;
  FakeStorage& note() const;
};

/// Null for undefined tensors and tensors that are not fake (a functional wrapper of one is not).
FakeImpl* fake_impl(const at::Tensor&);

/// A fake tensor with its own storage, from metadata alone.
at::Tensor make_fresh_fake(at::ScalarType, at::IntArrayRef sizes, at::IntArrayRef strides, c10::Device);
/// A fake tensor for a meta tensor, with a storage of its own.
at::Tensor wrap_fresh(const at::Tensor& meta, c10::Device);
/// A fake tensor for a meta tensor whose storage is that of `base`'s: a view of it.
at::Tensor wrap_view(const at::Tensor& meta, const at::Tensor& base);
/// A view of a fake tensor, from metadata alone. It takes over the conjugate and negative bits.
at::Tensor make_view(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset);

/// A real tensor that an operator would have written to under FakeMode: its data is no longer the program's value.
void mark_constant_written(const at::Tensor&);
bool is_constant_written(const at::Tensor&);

/// How the error begins that a fake tensor's storage raises when its data is asked for.
inline constexpr const char* kNoData = "a fake tensor has no data";

bool is_device_missing(c10::Device);
[[noreturn]] void refuse_backward(c10::Device);

}  // namespace cutaway::trace
