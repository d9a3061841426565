// Literals and run-time values brought to what an operator's schema asks for, by the rules by which torch.ops takes Python values.
// Main functions: literal_for (before the run, refuses with an Error) and bring (during the run, throws c10::TypeError).
#pragma once
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/ir/argument.h"

namespace cutaway::exec {

/// A schema's argument type: what the kernel receives (`type`: int for a dtype) and what the schema says (`real`: ScalarType).
struct SchemaType {
  c10::TypePtr type, real;
  std::optional<int32_t> length;   ///< of int[2]: a single number stands for all
  bool is_optional() const { return real->kind() == c10::TypeKind::OptionalType; }
  /// The type inside an optional, else this.
  SchemaType without_optional() const;
  /// Of a list.
  SchemaType element() const;
  bool is_list() const { return real->kind() == c10::TypeKind::ListType; }
};

/// The IValue of a literal. Lists and values are the caller's affair.
base::Result<c10::IValue> literal_for(const ir::Argument&, const SchemaType&);

/// What a value that is known only during the run must become.
enum class Expect : uint8_t { as_is, tensor, optional_tensor, number, integer, floating, boolean, complex };
Expect expect_for(const SchemaType&);
/// None stays None for everything but `tensor`, where it becomes the undefined tensor.
c10::IValue bring(c10::IValue, Expect);
/// A number where a tensor is wanted: 0-dim, and it does not take part in type promotion as a tensor would.
at::Tensor wrapped_number(const c10::Scalar&);
/// A list IValue of these items; the element type is theirs when they agree (tensors, ints, floats, bools), else Any.
c10::IValue list_of(std::vector<c10::IValue> items);

}  // namespace cutaway::exec
