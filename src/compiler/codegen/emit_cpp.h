// Loop form -> C++ text without headers, one function a kernel:
//   extern "C" void k3(void* const* buffer, long begin, long end)
// computes the units begin to end of its work (blocks of elements, rows, or groups of columns), so that threads can share it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// How many units a kernel's work has, and how many elements one has.
struct Work { int64_t units = 0, unit_elements = 0; };
Work work_of(const Kernel&, int lanes);

/// A kernel that serves every size reads them behind its buffers, buffer[buffers.size()]: `sizes` gets what stands there for this one.
std::string emit_cpp(const Kernel&, int lanes, std::vector<int64_t>* sizes = nullptr);

/// The kernel without names and comments: equal for kernels that compute the same on other buffers.
Kernel without_names(const Kernel&);
/// Its loop form as text.
std::string structure(const Kernel&);

}  // namespace cutaway::codegen
