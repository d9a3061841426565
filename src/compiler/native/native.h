// The backend `native`: graphs after ahead-of-time autograd become fused kernels that the machine's C++ compiler compiles; what has no rule stays a
// call of torch's. The first runs go operator by operator while the compiler works.
#pragma once
#include "compiler/backends/backend.h"
#include "compiler/codegen/generate.h"

namespace cutaway::native {

/// native[:wait][:kernels=N][:fusions=N][:rewrites=N]; wait compiles before the first run.
base::Result<std::unique_ptr<backends::Backend>> make_native(std::string_view parameters);

}  // namespace cutaway::native
