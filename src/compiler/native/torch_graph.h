// torch's own at::cuda::CUDAGraph, reached by the names that its library exports: private memory pools, random states and replays are torch's, and a
// build needs no CUDA headers.
#pragma once
#include <memory>
#include <string>

#include "core/base/result.h"

namespace cutaway::native {

/// Records what is launched on the current stream between begin() and end(), and plays it back on whatever stream is current then.
class TorchGraph {
 public:
  /// None of torch's CUDA libraries, or one that exports other names: the Error says which.
  static base::Result<std::unique_ptr<TorchGraph>> make();
  ~TorchGraph();
  TorchGraph(const TorchGraph&) = delete;
  TorchGraph& operator=(const TorchGraph&) = delete;
  /// The current stream must not be the default one. Other threads go on as they like. These three throw torch's exceptions.
  /// Workspaces of cuBLAS are given back before and after: those that a recording uses lie in its own memory, and nobody frees them or writes to them as long as it lives.
  void begin();
  void end();
  void replay();

 private:
  TorchGraph() = default;
  static constexpr size_t kBytes = 4096;   ///< far more than it has
  alignas(64) unsigned char memory_[kBytes];
  bool is_made_ = false;
};

}  // namespace cutaway::native
