// Wrong numbers on purpose, for tests of the debugger: one value of a kernel is computed wrongly, and everything that uses it sees that.
#pragma once
#include <set>
#include <string>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"
#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {

/// The values, by name, that a fault is planted in: "rewrites:softmax" (what that row made), "fusions:aten.gelu into aten.add.Tensor" (what joined so),
/// "kernels:aten.sin" (the last value of kernels of that name; `names` are those of the groups), "rules:aten.gelu" (every result of the operator).
std::set<std::string> planted_values(const std::string& planted, const ir::Graph&, const Fusion&, const std::vector<Rewritten>&, const std::vector<std::string>& names);
/// Makes the value wrong in this kernel. No factor and no constant: those would vanish in a softmax or a norm. False: the kernel does not compute it.
bool make_wrong(Kernel&, const std::string& value);

}  // namespace cutaway::codegen
