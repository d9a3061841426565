// Generated code as a whole program: the kernels, and a main that loads recorded values, runs the kernels in their order, times each and compares what it
// computes with what was recorded. Needs a C++ compiler and nothing else.
// Main functions: complete_program and values_of.
#pragma once
#include <string>
#include <vector>

#include "compiler/codegen/generate.h"

namespace cutaway::codegen {

/// A tensor that the program holds: an input of the fused graph, or what a top-level step gives.
struct ProgramValue {
  ir::ValueId value = ir::kNoValue;
  std::string name;
  ir::DType dtype = ir::DType::f32;
  std::vector<int64_t> sizes, strides;
  int64_t bytes = 0;              ///< from its first element to its last, gaps between them too
  enum class From : uint8_t { input, kernel, product, operators } from = From::input;
  bool is_output = false;
};
/// All of them, in the order of the program. Values that are no plain tensors of known sizes are left out.
std::vector<ProgramValue> values_of(const Program&);

struct ProgramTextOptions {
  int lanes = 8;
  std::string compiler = "g++";
  std::vector<std::string> flags;               ///< with which kernels are compiled
  std::string file = "output_code.cpp";         ///< its own name
  std::string values_file = "values.bin";       ///< beside it
  bool has_line_marks = false;
};
std::string complete_program(const Program&, const ProgramTextOptions&);

/// The file of recorded values: a line "cutaway values 1", and for each value a line "name dtype bytes" followed by that many bytes of its memory.
std::string values_header();
std::string value_header(const ProgramValue&);

}  // namespace cutaway::codegen
