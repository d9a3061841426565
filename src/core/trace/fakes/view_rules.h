// Views of a fake tensor straight from its sizes and strides, without a meta tensor: half of the operators of a model are views.
// Internal to core/trace.
#pragma once
#include <ATen/core/stack.h>

#include <string>
#include <vector>

namespace cutaway::trace {

/// Makes the views of `self` that the arguments ask for, or gives false where anything is out of the ordinary: then torch's own kernel
/// decides, and raises its own error. args[0] is `self`.
using ViewRule = bool (*)(const at::Tensor& self, const c10::IValue* args, c10::IValue& out);

/// Null when the operator has none.
ViewRule find_view_rule(const std::string& full_name);

}  // namespace cutaway::trace
