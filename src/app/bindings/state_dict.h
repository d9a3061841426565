// Parts of a manifest as Python writes them: the state around a call, how it failed.
#pragma once
#include <nanobind/nanobind.h>

#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::bindings {

/// From {"grad_enabled": …, "inference_mode": …, "autocast": [(device, enabled, dtype, cache), …]}, each optional.
ir::RegionState state_from(nanobind::dict);
/// The fields that are not empty, by name.
nanobind::dict signature_dict(const bundle::FailureSignature&);

}  // namespace cutaway::bindings
