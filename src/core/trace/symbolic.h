// Recordings for core/symbolic: a program is recorded at several sizes by recorders and fake tensors. Main function: record_symbolic().
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/symbolic/search.h"

namespace cutaway::trace {

/// Numbers for the constants of recordings of one program: those at one position have the same number where the tensors are the same, or
/// equal in type and value. core/symbolic compares the numbers.
class ConstantNumbers {
 public:
  std::vector<size_t> of(const std::vector<at::Tensor>& constants);

 private:
  std::vector<std::vector<at::Tensor>> known_;   // by position
};

/// symbolic::search() over recordings that call torch: a c10::Error that one throws means that the program does not take these sizes, and
/// its operators are counted. What the first recording throws passes through.
base::Result<symbolic::SymbolicGraph> record_symbolic(const symbolic::RecordAt&, std::vector<symbolic::Symbol>);

}  // namespace cutaway::trace
