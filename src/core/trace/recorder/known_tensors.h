// The tensors that a recording has met, and the values that stand for them: found by the tensor itself, or by the storage that it lies on.
// All are held until the end, so that no address is used twice. Internal to core/trace.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <utility>

#include "core/ir/graph.h"
#include "core/trace/node_pointer.h"

namespace cutaway::trace {

struct KnownTensor {
  at::Tensor tensor;
  ir::ValueId id = ir::kNoValue;
  bool is_derived = false;
  NodePointer history;   ///< above autograd: of the tensor when the operator had run
  c10::Storage storage;  ///< then
};

class KnownTensors {
 public:
  KnownTensors() { by_tensor_.reserve(512); }

  /// Null for a tensor that was not met, or was forgotten. The address holds as long as the table.
  KnownTensor* find(const at::Tensor& t) {
    const auto it = by_tensor_.find(t.unsafeGetTensorImpl());
    return it == by_tensor_.end() ? nullptr : &entries_[it->second].known;
  }
  const KnownTensor* find(const at::Tensor& t) const { return const_cast<KnownTensors*>(this)->find(t); }

  /// In place of what was known of the tensor, if anything.
  KnownTensor& put(KnownTensor known) {
    const auto [it, is_new] = by_tensor_.emplace(known.tensor.unsafeGetTensorImpl(), static_cast<uint32_t>(entries_.size()));
    if (is_new) entries_.push_back({std::move(known), kNone});
    else entries_[it->second].known = std::move(known);
    return entries_[it->second].known;
  }
  /// It is held on, but no value stands for it.
  void forget(const at::Tensor& t) {
    const auto it = by_tensor_.find(t.unsafeGetTensorImpl());
    if (it == by_tensor_.end()) return;
    entries_[it->second].known.id = ir::kNoValue;
    by_tensor_.erase(it);
  }

  template <class F> void for_each(F&& f) const {
    for (const Entry& e : entries_)
      if (e.known.id != ir::kNoValue) f(e.known);
  }
  /// Calls f(KnownTensor&) for the strided tensors on a storage, newest first. f must not add any.
  template <class F> void for_each_on(const c10::StorageImpl* storage, F&& f) {
    for (uint32_t i = newest_on(storage); i != kNone; i = entries_[i].older)
      if (entries_[i].known.id != ir::kNoValue) f(entries_[i].known);
  }
  /// Whether a tensor on it was ever met.
  bool has_storage(const c10::StorageImpl* storage) { return newest_on(storage) != kNone; }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Entry { KnownTensor known; uint32_t older = kNone; };   ///< older: the one before on the same storage

  /// Storages are asked for by few programs, so their index is only brought up to date here.
  uint32_t newest_on(const c10::StorageImpl* storage) {
    for (; indexed_ < entries_.size(); ++indexed_) {
      Entry& e = entries_[indexed_];
      if (e.known.tensor.layout() != at::kStrided || !e.known.storage) continue;
      auto [it, is_new] = by_storage_.emplace(e.known.storage.unsafeGetStorageImpl(), indexed_);
      if (!is_new) e.older = std::exchange(it->second, indexed_);
    }
    const auto it = by_storage_.find(storage);
    return it == by_storage_.end() ? kNone : it->second;
  }

  std::deque<Entry> entries_;
  ska::flat_hash_map<const c10::TensorImpl*, uint32_t> by_tensor_;
  ska::flat_hash_map<const c10::StorageImpl*, uint32_t> by_storage_;
  uint32_t indexed_ = 0;
};

}  // namespace cutaway::trace
