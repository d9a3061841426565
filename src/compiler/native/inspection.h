// How one compiled graph is looked at: which files it leaves, whether its kernels come from a file of somebody's, whether its runs are checked, timed or recorded.
// Main type: Inspection. A graph that nobody looks at runs as if this were not there.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "compiler/backends/backend.h"
#include "compiler/codegen/generate.h"
#include "compiler/native/profile.h"
#include "compiler/native/toolchain.h"
#include "core/exec/interpreter.h"

namespace cutaway::native {

struct InspectionOptions {
  std::string backend = "native";   ///< with its settings
  bool observes = false;            ///< kernels store every value, and run_observed() tells it
  int check = 0;                    ///< CUTAWAY_CHECK
  bool lines = false;               ///< #line directives in the text, and the compiler's -g1
  std::string code;                 ///< a file with kernels in place of the generated ones
  std::string profile;              ///< a file for its profile, which is written behind each run; such a run is repeated
  std::string write_code;           ///< where the generated program goes, and its values beside it
};

class Inspection {
 public:
  /// Program and graph must outlive it. Writes the files of the debug directory that are known now.
  Inspection(InspectionOptions, const codegen::Program&, const ir::Graph& whole, int lanes, debug::Sink*);
  /// Writes the program to InspectionOptions::write_code.
  base::Status write() const;
  /// The text that was generated, or the file that was given, compiled. Every function that a kernel needs is there.
  base::Result<std::shared_ptr<Library>> load(debug::Sink*) const;
  /// A file with kernels, compiled: these functions are in it.
  static base::Result<std::shared_ptr<Library>> load_code(const std::string& file, const std::vector<const codegen::Text*>&, int lanes, debug::Sink*);
  /// The calls must be watched(), and run() called.
  bool is_needed() const { return is_needed_; }
  std::vector<c10::IValue> run(const exec::Program&, std::vector<c10::IValue>& inputs);
  /// Runs, and tells every value.
  std::vector<c10::IValue> run_telling(const exec::Program&, std::vector<c10::IValue>& inputs, const backends::ValueObserver&) const;

 private:
  std::string text_for(const std::string& file, const std::string& values_file) const;
  std::string graph_name() const { return program_.graph.name.empty() ? "graph" : program_.graph.name; }

  InspectionOptions options_;
  const codegen::Program& program_;
  const ir::Graph& whole_;
  int lanes_;
  bool is_needed_ = false;
  std::shared_ptr<GraphTimes> times_;
  std::atomic<bool> wants_values_ = false;
};

/// The steps of a fused graph: kernels with the values that they compute, and operators that stayed.
std::vector<backends::Kernel> kernels_of(const codegen::Program&);

}  // namespace cutaway::native
