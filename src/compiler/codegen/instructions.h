// The fused graph as it is executed: one line an instruction, with what it frees.
#pragma once
#include <string>

#include "compiler/codegen/generate.h"

namespace cutaway::codegen {

/// "3  kernel  %gelu = native.k0(%x, %w)   frees %x   # model.py:12"; `kernel`, `product` and `torch` say who computes.
std::string instructions_text(const Program&);

}  // namespace cutaway::codegen
