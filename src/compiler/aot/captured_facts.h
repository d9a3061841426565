// What can be told of a captured graph before it runs. Internal to compiler/aot.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::aot {

/// Whether an operator of it writes to an argument.
bool writes_to_arguments(const ir::Graph&);
/// The user's line for each operator, in program order: its own, or that of the captured call around it.
std::vector<ir::LocationId> locations_by_position(const ir::Graph&);
/// Whether it takes x.data of a tensor, which shares all but the version with x.
bool takes_data(const ir::Graph&);
/// Whether it counts from the start of a storage (as_strided), so that what was recorded holds for inputs at the same place only.
bool uses_offsets(const ir::Graph&);
/// As trace::checking_operator, for the target of a node.
std::string_view checking_operator(const std::string& target);

}  // namespace cutaway::aot
