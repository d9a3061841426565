// Does a node's target name the operator that somebody asked for?
#pragma once
#include <string_view>

namespace cutaway::ir {

/// True for the same name, and for any overload when `wanted` has none: "aten.add" covers "aten.add" and "aten.add.Tensor", not "aten.addmm".
inline bool is_op(std::string_view wanted, std::string_view target) {
  return target.starts_with(wanted) && (target.size() == wanted.size() || target[wanted.size()] == '.');
}

}  // namespace cutaway::ir
