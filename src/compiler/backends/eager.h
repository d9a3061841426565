// The backend that compiles nothing: the reference interpreter behind the Backend interface.
#pragma once
#include "compiler/backends/backend.h"

namespace cutaway::backends {
base::Result<std::unique_ptr<Backend>> make_eager(std::string_view parameters);
}
