// What can be told of a captured graph before it runs. Internal to compiler/aot.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::aot {

/// Whether an operator of it writes to an argument.
bool writes_to_arguments(const ir::Graph&);
/// The first node of the body from which on something equal may stand in the place of this value: it is made, everybody has written to its memory, and nobody reads that memory later by something
/// that was made before. None where somebody does.
std::optional<size_t> replaceable_from(const ir::Graph&, ir::ValueId);
/// The user's line for each operator, in program order: its own, or that of the captured call around it.
std::vector<ir::LocationId> locations_by_position(const ir::Graph&);
/// Whether it takes x.data of a tensor, which shares all but the version with x.
bool takes_data(const ir::Graph&);
/// Whether it counts from the start of a storage (as_strided), so that what was recorded holds for inputs at the same place only.
bool uses_offsets(const ir::Graph&);
/// Why writes in place cannot be told from the functional operators in their place; empty where they can.
std::string why_writes_would_be_lost(const ir::Graph&);
/// As trace::checking_operator, for the target of a node.
std::string_view checking_operator(const std::string& target);

}  // namespace cutaway::aot
