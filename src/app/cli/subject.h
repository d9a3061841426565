// What a command is pointed at: a graph file or a bundle. Reading either executes nothing.
#pragma once
#include <filesystem>
#include <optional>

#include "core/bundle/archive.h"
#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::cli {

struct Subject {
  std::filesystem::path path;
  ir::Graph graph;
  std::optional<bundle::Manifest> manifest;   ///< of a bundle
};
/// A missing path, a directory that is no bundle and a file that is no graph are three different errors.
base::Result<Subject> read_subject(const std::filesystem::path&);

}  // namespace cutaway::cli
