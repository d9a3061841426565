// Memory for what kernels write. A block that is freed is kept and given out again: the system takes large blocks back from malloc and hands out new pages
// that must be cleared and mapped, which costs a training step a tenth of its time.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>

namespace cutaway::native {

/// Shared by all threads, never destroyed: a tensor may outlive everything else. $CUTAWAY_POOL_MB (256) megabytes at most are kept; 0 keeps none.
c10::Allocator& pool();
/// Bytes that are kept for later.
int64_t pool_bytes();

/// The memory of one run of a graph, for calls that ask on the same thread while it stands. Runs inside of runs each have their own.
class Arena {
 public:
  /// `owner` is who may use it: another graph's calls do not.
  Arena(const void* owner, int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Null when the run that is under way is not that owner's.
  static const c10::Storage* of(const void* owner);

 private:
  const void* owner_;
  c10::Storage storage_;
  Arena* outer_;
};

}  // namespace cutaway::native
