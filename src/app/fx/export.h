// Our Graph as a torch.fx.GraphModule: what Python backends take.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "core/ir/graph.h"

namespace cutaway::fx {

/// Operators as torch.ops.*, captured calls as their own Python call (or as the operators they ran, for a name outside torch's
/// tensor functions). The user's inputs are placeholders; the others are attributes of the module when `lifted` holds their
/// tensors, and placeholders when it is None. Returns a tuple always. `grad_enabled` is the
/// mode around the graph, if it is known: a region that changes it then goes back to that. Throws ErrorException for an operator that torch lacks.
nanobind::object export_fx(const ir::Graph& graph, nanobind::handle lifted, std::optional<bool> grad_enabled);

}  // namespace cutaway::fx
