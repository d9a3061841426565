// The state around a call as Python's manifests write it.
#pragma once
#include <nanobind/nanobind.h>

#include "core/ir/graph.h"

namespace cutaway::bindings {

/// From {"grad_enabled": …, "inference_mode": …, "autocast": [(device, enabled, dtype, cache), …]}, each optional.
ir::RegionState state_from(nanobind::dict);

}  // namespace cutaway::bindings
