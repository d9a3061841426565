// Writing what a failure leaves behind: a bundle with its data, and repro.py in it.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::repro {

struct WrittenRepro {
  uint64_t bytes = 0;               ///< of data, each storage once
  size_t seeded = 0;                ///< tensors without data: random by seed, with the reason in the manifest
  std::string script_problem;       ///< why there is no repro.py; empty: there is one
};
/// A bundle at `path` (replaced in one step if there is one), data up to `max_bytes`, metadata and a seed above. The manifest is taken as it is
/// but for its inputs, and for the user's line of a failure that names an operator and no line. `parameters` are the positions of torch.nn.Parameters. A graph that Python cannot say has no repro.py, and says why.
base::Result<WrittenRepro> write_repro(const std::filesystem::path& path, const ir::Graph&, bundle::Manifest, const std::vector<c10::IValue>& inputs,
                                       const std::vector<size_t>& parameters, uint64_t max_bytes);

/// folder/checkpoints/<nodes>: where the bundle of this graph goes. Another graph with as many nodes gets a number of its own, so that nothing is lost.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, const ir::Graph&);
/// folder/repro becomes a copy of that bundle: links where the file system has them.
base::Status copy_newest(const std::filesystem::path& bundle, const std::filesystem::path& folder);

}  // namespace cutaway::repro
