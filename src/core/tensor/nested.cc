#include "core/tensor/nested.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

namespace cutaway::tensor {

c10::IValue map_tensors(const c10::IValue& v, const std::function<at::Tensor(const at::Tensor&)>& f) {
  if (v.isTensor()) return v.toTensor().defined() ? c10::IValue(f(v.toTensor())) : v;
  if (v.isTuple()) {
    std::vector<c10::IValue> items;
    for (const c10::IValue& e : v.toTupleRef().elements()) items.push_back(map_tensors(e, f));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (v.isIntList() || v.isDoubleList() || v.isBoolList()) return v;
  if (v.isList()) {
    c10::impl::GenericList list(v.toList().elementType());
    for (const c10::IValue& e : v.toListRef()) list.push_back(map_tensors(e, f));
    return c10::IValue(std::move(list));
  }
  if (v.isGenericDict()) {
    const auto dict = v.toGenericDict();
    c10::impl::GenericDict copy(dict.keyType(), dict.valueType());
    for (const auto& e : dict) copy.insert(e.key(), map_tensors(e.value(), f));
    return c10::IValue(std::move(copy));
  }
  return v;
}

}  // namespace cutaway::tensor
