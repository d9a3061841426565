// IValue -> literal of a graph, by the schema's type: an int of a schema's ScalarType is a dtype. Internal to core/trace.
#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

#include "core/ir/argument.h"

namespace cutaway::trace {

/// Tensors are handed to `tensor`, generators to `generator`, unknown numbers to `symbolic`. Throws c10::NotImplementedError for what no literal can hold.
struct LiteralWriter {
  std::function<ir::Argument(const at::Tensor&)> tensor;
  std::function<ir::Argument(const at::Generator&)> generator;
  std::function<ir::Argument(const c10::IValue&)> symbolic;   ///< a SymInt, SymFloat or SymBool that is no number
  /// `type` may be null: then the value's own kind decides.
  ir::Argument write(const c10::IValue&, const c10::Type* type = nullptr) const;
};

}  // namespace cutaway::trace
