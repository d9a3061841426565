// What `native:freeze` keeps: a weight in the product's own layout, for as long as the weight is seen to be the same.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace cutaway::native {

/// Every kept weight counts as changed: for writes that no counter shows (the fused steps of optimisers).
void thaw_all();

class FrozenWeight {
 public:
  /// Writes the packed form of a weight that begins at the given address; `bytes` is its size.
  using Pack = std::function<void(const void* data, void* out)>;
  FrozenWeight(size_t bytes, Pack pack) : bytes_(bytes), pack_(std::move(pack)) {}

  /// The packed form, or null: the weight is new or was written to since the last call, or has no counter of writes. Beside the counter a few elements are compared: that is no proof, and finds most
  /// writes that are not counted. A weight that changes at each call is never packed.
  std::shared_ptr<const void> get(const at::Tensor&);

 private:
  struct Seen {
    c10::Storage storage;   ///< held, so that nothing else can get its address
    const void* data = nullptr;
    uint32_t version = 0;
    uint64_t epoch = 0;
  };
  bool has_same_samples(const at::Tensor&) const;
  const size_t bytes_;
  const Pack pack_;
  std::mutex mutex_;
  Seen seen_;
  std::shared_ptr<const void> packed_;
  std::array<std::byte, 128> samples_{};
};

}  // namespace cutaway::native
