// The backend that differentiates ahead of time and runs the two graphs operator by operator. A graph that went through ahead-of-time
// autograd already (stage "aot") runs as it is.
#pragma once
#include "compiler/backends/backend.h"

namespace cutaway::backends {
base::Result<std::unique_ptr<Backend>> make_aot_eager(std::string_view parameters);
}
