// A bundle as a Python script that shows its failure with torch alone: repro.py.
// Exit status: 0 the failure does not show, 1 (or the same signal) it does, 3 another failure, 4 eager itself fails, 2 it cannot run here.
#pragma once
#include <filesystem>
#include <string>

#include "core/base/result.h"
#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::script {

/// The graph as a function, the inputs of the manifest, its backend, options, state and seed, and the check of its kind of failure: an
/// exception by its type, wrong numbers by comparing with eager and with a run in double precision. After capture the backend is reached
/// by torch.compile, after ahead-of-time autograd it gets the traced graph itself. Blobs are read from `blob_folder` beside the script.
base::Result<std::string> to_repro_script(const ir::Graph&, const bundle::Manifest&, const std::string& blob_folder = "blobs");
/// False: the backend is a part of Cutaway, or lives in a process that only Cutaway can start, and the script only says so (exit status 2).
bool runs_with_torch_alone(const bundle::Manifest&);
/// How the script gets at a backend or at operators that only the program has, in words; empty: there is no need.
std::string program_in_script(const bundle::Manifest&);
/// Writes it as repro.py into the directory of the bundle. The Error says why there is none; the bundle is complete without.
base::Status write_repro_script(const std::filesystem::path& bundle, const ir::Graph&, const bundle::Manifest&);

}  // namespace cutaway::script
