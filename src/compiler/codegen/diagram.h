// The fused graph as a picture: one line a step, in the order in which they run, and an arc from who makes a value to who uses it. SVG text, no other program needed.
#pragma once
#include <string>

#include "compiler/codegen/generate.h"

namespace cutaway::codegen {

std::string diagram(const Program&);

}  // namespace cutaway::codegen
