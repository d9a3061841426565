// What several passes do after they took something away: keep graph and manifest in step.
#pragma once
#include <vector>

#include "diagnosis/minify/minify.h"

namespace cutaway::minify {

/// Removes dead nodes and unused inputs, and the manifest's entries with them.
void prune(Case&, const PassContext&);

/// Removes the top-level nodes marked in `removed`. A value that a kept node needs becomes an input with the value recorded from eager;
/// where none is recorded its node stays after all. Outputs that are gone are dropped; kept nodes that lost their users become outputs.
/// Does nothing when no node would be left.
void remove_nodes(Case&, std::vector<bool> removed, const PassContext&);

}  // namespace cutaway::minify
