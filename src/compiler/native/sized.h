// A graph with symbolic sizes: its kernels are bound for the sizes of each call when they first come, and texts that serve every size are compiled once.
// Main type: SizedGraph.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "compiler/backends/backend.h"
#include "compiler/codegen/generate.h"
#include "compiler/native/inspection.h"
#include "compiler/native/cuda_driver.h"
#include "compiler/native/kernel_call.h"
#include "core/exec/interpreter.h"
#include "core/exec/symbols.h"

namespace cutaway::native {

/// A compiled function and what keeps it open.
struct Loaded { std::shared_ptr<Library> library; void* function = nullptr; };
/// By device: the libraries of a program's CUDA kernels.
using CudaLibraries = std::map<int, std::shared_ptr<CudaLibrary>>;
/// Calls in place of a program's regions; `find` gives the function of a text by its number. Errors where one is not there.
base::Result<exec::BoundCalls> bind_kernels(const codegen::Program&, const std::function<Loaded(size_t text)>& find, const CudaLibraries& = {}, bool freeze = false);

/// The symbols that a graph uses, in order.
std::vector<std::string> symbols_of(const ir::Graph&);
/// The graph at the sizes of these inputs. Refuses symbols that no input tells.
base::Result<ir::Graph> at_sizes_of(const ir::Graph&, const std::vector<c10::IValue>& inputs);

class SizedGraph final : public backends::CompiledGraph {
 public:
  struct Settings {
    codegen::Options options;
    bool waits = false;        ///< a size is compiled before it first runs
    bool compiles = true;      ///< false: there is no compiler, operators run
    InspectionOptions look;
  };
  /// Refuses symbols that no input tells. `first` is called for the kernels of the examples' sizes.
  static base::Result<std::unique_ptr<SizedGraph>> make(const ir::Graph&, Settings, const std::vector<c10::IValue>& examples, const std::function<void(const codegen::Program&)>& first, debug::Sink*);
  ~SizedGraph() override;

  /// By kernels where those of these sizes are there, else by operators. Thread-safe.
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override;
  bool tells_values() const override { return settings_.look.observes; }
  std::vector<c10::IValue> run_observed(std::vector<c10::IValue>& inputs, const backends::ValueObserver&) override;
  std::vector<backends::Kernel> kernels() const override { return kernels_; }
  int64_t new_kernels() const override { return new_kernels_; }

 private:
  using Numbers = std::vector<int64_t>;   ///< of the symbols, in order
  struct Instance {
    Numbers numbers;
    codegen::Program program;             ///< calls point into it
    ir::Graph whole;                      ///< at these sizes; empty where nobody looks
    std::unique_ptr<Inspection> inspection;
    std::optional<exec::Program> fast;
    std::atomic<const exec::Program*> ready{nullptr};
  };
  SizedGraph(ir::Graph, exec::SymbolSources, exec::Program, Settings);

  std::shared_ptr<Instance> known(const Numbers&);
  std::shared_ptr<Instance> find(const Numbers&, const std::function<void(const codegen::Program&)>* first, debug::Sink*);
  std::vector<const codegen::Text*> missing(const codegen::Program&) const;
  base::Status load(const std::vector<const codegen::Text*>&, const ir::Graph& marks, debug::Sink*);
  base::Status bind(Instance&);
  void finish_beside(std::shared_ptr<Instance>);
  void work();

  const ir::Graph symbolic_;
  const exec::SymbolSources sources_;
  const exec::Program operators_;
  Settings settings_;
  std::vector<backends::Kernel> kernels_;   ///< of the first sizes
  base::Status problem_;                    ///< with code that somebody gave, or where it was to be written
  std::atomic<int64_t> new_kernels_{0};

  std::mutex instances_mutex_, making_;
  std::list<std::shared_ptr<Instance>> instances_;   ///< the last used first
  mutable std::mutex texts_mutex_;
  std::unordered_map<std::string, Loaded> texts_;    ///< by key; a null function where it could not be compiled

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<std::shared_ptr<Instance>> queue_;
  bool is_ending_ = false;
  std::thread worker_;
  int worker_process_ = 0;   ///< a child of fork has no worker
};

}  // namespace cutaway::native
