// The text that stands before generated kernels: vector types, loads and stores, functions. Needs no header, so that it compiles quickly.
#pragma once
#include <string>

namespace cutaway::codegen {

/// For vectors of `lanes` elements: 16 with AVX-512, 8 with AVX2, 4 otherwise.
std::string prelude(int lanes);

}  // namespace cutaway::codegen
