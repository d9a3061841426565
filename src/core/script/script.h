// A graph and its inputs as a Python script that needs torch alone: what goes into a bug report.
// Main function: to_python. Text in, text out; nothing is run and no file is read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::script {

struct ScriptOptions {
  /// By position of the input; empty or missing: as the InputRef says. A file written by torch.save with one tensor, relative to
  /// the script.
  std::vector<std::string> files;
  std::string blob_folder = "blobs";   ///< where InputRefs of kind `data` find their storages, relative to the script
  uint64_t seed = 0;                   ///< torch.manual_seed before the graph runs
  ir::RegionState state;               ///< around the graph
  std::string title;                   ///< first line of the script's docstring; empty: the graph's name
  /// In place of the part that runs the graph: Python text in which kGraphName stands for the function's name; `usage` is then the rest
  /// of the docstring and `imports` what the text needs of the standard library and of torch.
  std::string main_part, usage;
  std::vector<std::string> imports;
  bool uses_random = false;            ///< main_part needs the functions that make random numbers
};
/// Stands for the name of the graph's function in ScriptOptions::main_part.
inline constexpr std::string_view kGraphName = "@graph@";

/// The script: one function with the graph's name whose body is the graph, one that builds the inputs (random numbers are those of
/// tensor::rand_strided, bit for bit), and a main part that runs it. Operators are called as torch.ops.*, captured calls by their own
/// Python name where that is one of torch's tensor functions, else as the operators they ran.
/// `inputs` as many as the graph has. Refuses what Python cannot say: a named random state, a symbol that no input tells.
base::Result<std::string> to_python(const ir::Graph&, const std::vector<bundle::InputRef>& inputs, const ScriptOptions& = {});

/// Seeded inputs from the types alone. Refuses symbolic sizes and inputs that are not tensors: they need values.
base::Result<std::vector<bundle::InputRef>> inputs_from_types(const ir::Graph&, uint64_t seed);

}  // namespace cutaway::script
