// The exception table of a code object: which handler an instruction has. Offsets are in code units of two bytes.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::bytecode {

struct ExceptionEntry {
  int32_t start = 0, end = 0;   ///< units [start, end)
  int32_t target = 0;
  int32_t depth = 0;
  bool lasti = false;
};
std::vector<ExceptionEntry> read_exception_table(PyCodeObject*);
/// The table's bytes. Entries in ascending order, not overlapping.
std::string write_exception_table(const std::vector<ExceptionEntry>&);

}  // namespace cutaway::bytecode
