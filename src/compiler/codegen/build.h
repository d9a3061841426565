// A group of nodes -> the kernel that computes them.
#pragma once
#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"
#include "compiler/codegen/sizes.h"

namespace cutaway::codegen {

/// `stored`: the values of the group that something outside wants. With `sizes` the kernel's text serves every size.
Kernel build_kernel(const ir::Graph&, const Fusion&, const Group&, const std::vector<ir::ValueId>& stored, std::string name, const SymbolicSizes* sizes = nullptr);

}  // namespace cutaway::codegen
