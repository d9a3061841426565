// The rules of a tensor's type, which the parser and verify() both apply. docs/formats/graph.md numbers them.
#pragma once
#include <string>

#include "core/ir/type.h"

namespace cutaway::ir {

/// What is wrong with the type, in words; empty when nothing is.
std::string breach_of(const TensorType&);
/// What is wrong with a symbolic integer: an operand too few, a symbol that is not an identifier, too deep. Empty when nothing is.
std::string breach_of(const Dim&);

}  // namespace cutaway::ir
