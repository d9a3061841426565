// Arithmetic on sizes: the operators of the namespace "sym" (sym.add, sym.floordiv, sym.max, …), which torch's dispatcher does not have
// because in a traced program they are Python's own. Python's rules: bool counts as an int, // and % round down, / gives a float.
#pragma once
#include <ATen/core/ivalue.h>

#include <string_view>

#include "core/ir/verify.h"

namespace cutaway::exec {

struct ScalarOp {
  std::string_view name;   ///< without "sym."
  int arity;               ///< kAnyArity: one list of any length
  static constexpr int kAnyArity = -1;
  /// Arguments are numbers or bools. Throws c10::Error on division by zero, overflow of 64 bits and the like.
  c10::IValue (*run)(const c10::IValue* args, size_t count);
};

/// Null when there is none, or when `target` is not in the namespace "sym".
const ScalarOp* find_scalar_op(std::string_view target);
/// As torch would write it: every argument a Scalar.
ir::Schema scalar_op_schema(const ScalarOp&);

}  // namespace cutaway::exec
