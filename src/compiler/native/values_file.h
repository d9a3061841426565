// Recording what a compiled graph held in one run, in the file that the generated program reads (codegen/program_text.h).
#pragma once
#include <string>

#include "compiler/codegen/program_text.h"
#include "core/exec/interpreter.h"

namespace cutaway::native {

/// Values above this are not written: the program makes numbers up then, and says so.
inline constexpr int64_t kMostValueBytes = int64_t{1} << 28;

/// Runs the program (whose calls are watched()) and gives, besides its outputs, the text of the file; empty where it would be too large.
std::vector<c10::IValue> run_recorded(const exec::Program&, const codegen::Program&, std::vector<c10::IValue>& inputs, std::string& file);

}  // namespace cutaway::native
