// From arguments to the metadata of results: the memo, then a rule of ours, then torch's C++ meta kernel, then the dispatcher.
// Internal to core/trace.
#pragma once
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {

/// Metadata of one fresh tensor.
struct TensorShape {
  at::ScalarType dtype = at::kFloat;
  bool is_defined = true;
  c10::SmallVector<int64_t, 5> sizes, strides;
};
/// Results of an operator that returns fresh tensors: one entry a tensor; `lengths` has -1 for a single tensor, n for a list.
struct ResultShapes {
  std::vector<TensorShape> tensors;
  std::vector<int32_t> lengths;
};

/// The operator and everything about its arguments that a shape may depend on, as bytes. Empty when the call cannot be memoized.
void write_memo_key(const OperatorInfo&, const torch::jit::Stack&, std::string& key);
/// Null when this call was not seen before.
const ResultShapes* find_memo(const std::string& key);
void store_memo(const std::string& key, ResultShapes);
/// Describes results; false when one of them is not fresh and whole (it has an offset, or shares a storage with `arguments`).
bool describe_results(const OperatorInfo&, const torch::jit::Stack&, const std::vector<const c10::StorageImpl*>& arguments, ResultShapes&);

/// Counts one use of a view rule, as a rule of ours.
void count_view();
/// Counts one call that a memo answered.
void count_memo_hit();
/// Replaces the arguments on the stack, which are meta tensors, by the results.
void infer_on_meta(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*);

}  // namespace cutaway::trace
