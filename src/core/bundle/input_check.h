// Do a graph and a manifest speak of the same inputs? Asked when a bundle is written and when it is read. Internal to core/bundle.
#pragma once
#include <string>

#include "core/bundle/bundle.h"

namespace cutaway::bundle {

/// As many inputs; tensors for tensors with equal dtype and sizes; literals for the rest. Errors have no place yet.
base::Status check_inputs(const ir::Graph&, const Manifest&);
/// "input %w, f32[64, 64]".
std::string describe_input(const ir::Graph&, const Manifest&, size_t position);

}  // namespace cutaway::bundle
