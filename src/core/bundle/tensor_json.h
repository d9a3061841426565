// A tensor record as part of a larger JSON document. Internal to core/bundle.
#pragma once
#include "core/base/json.h"
#include "core/bundle/tensor_record.h"

namespace cutaway::bundle {

base::Json tensor_to_json(const TensorRecord&);
base::Result<TensorRecord> tensor_from_json(const base::JsonAt&);

}  // namespace cutaway::bundle
