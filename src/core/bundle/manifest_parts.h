// Parts of a manifest that other documents hold too: an input, and the state around a run.
#pragma once
#include "core/base/json.h"
#include "core/bundle/bundle.h"

namespace cutaway::bundle {

base::Json input_to_json(const InputRef&);
base::Result<InputRef> input_from_json(const base::JsonAt&);
base::Json state_to_json(const ir::RegionState&);
base::Result<ir::RegionState> state_from_json(const base::JsonAt&);

}  // namespace cutaway::bundle
