// A place in the user's program as a node's line ends with it.
#pragma once
#include <string>

#include "core/ir/graph.h"

namespace cutaway::ir {

/// "model.py:12 Net.forward in layers.0".
std::string print_location(const Location&);

}  // namespace cutaway::ir
