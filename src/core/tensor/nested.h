// Following the tensors inside of lists, tuples and dicts.
#pragma once
#include <ATen/core/ivalue.h>

#include <functional>

namespace cutaway::tensor {

/// The same structure with every defined tensor replaced by f(tensor). Values without tensors are returned as they are.
c10::IValue map_tensors(const c10::IValue&, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace cutaway::tensor
