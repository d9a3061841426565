// torch's C++ meta kernels, called without the dispatcher. `import torch` replaces most of them there by Python functions that
// take up to a millisecond each; the C++ ones stay exported as at::meta::*. The rows are generated: tools/generate_meta_table.py.
#pragma once
#include <ATen/core/boxing/KernelFunction.h>

#include <string>
#include <unordered_map>

namespace cutaway::trace {

/// By "aten::add.Tensor" ("aten::mm" when the overload has no name).
using KernelTable = std::unordered_map<std::string, c10::KernelFunction>;

/// The meta kernel of an operator, by its full name; null when it has no row.
const c10::KernelFunction* find_meta_kernel(const std::string& full_name);

/// "aten::add" and "Tensor" -> the key of a row.
inline std::string row_name(const char* name, const char* overload) {
  std::string full(name);
  if (*overload) full.append(".").append(overload);
  return full;
}

namespace detail {
void add_meta_rows_0(KernelTable&);
void add_meta_rows_1(KernelTable&);
void add_meta_rows_2(KernelTable&);
void add_meta_rows_3(KernelTable&);
}  // namespace detail

}  // namespace cutaway::trace
