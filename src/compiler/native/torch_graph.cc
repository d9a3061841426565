#include "compiler/native/torch_graph.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

namespace cutaway::native {
namespace {

using base::Error;
using base::Result;

/// The members of at::cuda::CUDAGraph, as functions of an address.
struct Exports {
  void (*construct)(void*, bool keep_graph) = nullptr;
  void (*destroy)(void*) = nullptr;
  void (*begin)(void*, std::pair<unsigned long long, unsigned long long> pool, int mode) = nullptr;
  void (*end)(void*) = nullptr;
  void (*replay)(void*) = nullptr;
  void (*clear_workspaces)() = nullptr;
};
constexpr int kThreadLocal = 1;   ///< cudaStreamCaptureModeThreadLocal: what other threads do meanwhile is their own

Result<Exports> find_exports() {
  void* library = ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return Error{.what = "torch's CUDA library is not loaded"};
  Exports e;
  const auto find = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(library, name));
    return into != nullptr;
  };
  if (!find(e.construct, "_ZN2at4cuda9CUDAGraphC1Eb") || !find(e.destroy, "_ZN2at4cuda9CUDAGraphD1Ev") || !find(e.begin, "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode") ||
      !find(e.end, "_ZN2at4cuda9CUDAGraph11capture_endEv") || !find(e.replay, "_ZN2at4cuda9CUDAGraph6replayEv") ||
      !find(e.clear_workspaces, "_ZN2at4cuda21clearCublasWorkspacesEv"))
    return Error{.what = "this torch has another class of CUDA graphs", .because = ::dlerror()};
  return e;
}

const Result<Exports>& exports() {
  static const Result<Exports> found = find_exports();
  return found;
}

}  // namespace

Result<std::unique_ptr<TorchGraph>> TorchGraph::make() {
  if (!exports().ok()) return exports().error();
  std::unique_ptr<TorchGraph> graph(new TorchGraph);
  std::memset(graph->memory_, 0, sizeof graph->memory_);
  exports()->construct(graph->memory_, false);
  graph->is_made_ = true;
  return graph;
}

TorchGraph::~TorchGraph() {
  if (is_made_) exports()->destroy(memory_);
}

void TorchGraph::begin() {
  exports()->clear_workspaces();
  exports()->begin(memory_, {0, 0}, kThreadLocal);
}
void TorchGraph::end() {
  exports()->end(memory_);
  exports()->clear_workspaces();   // they go back to the recording's memory
}
void TorchGraph::replay() { exports()->replay(memory_); }

}  // namespace cutaway::native
