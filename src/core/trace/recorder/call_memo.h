// The memo above autograd: a call like one that was recorded before gets results of the same shapes without running. An operator such as
// `linear` runs as four or five others below, each with an autograd node; here it costs one look-up. Only for operators of torch that give
// fresh tensors, and only on fake tensors whose values nobody knows: then everything that such a call does is to make its results.
// Internal to core/trace.
#pragma once
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {

/// The engine stops inside a recording above autograd. Counted (refused_above_autograd), then thrown as c10::NotImplementedError.
[[noreturn]] void refuse_backward();
/// Counts one that the recording itself notes as its error.
void count_refused_above_autograd();

/// One call, before it runs.
class MemoizedCall {
 public:
  MemoizedCall(const OperatorInfo&, const torch::jit::Stack&);
  /// Puts results in place of the arguments when the call is known. Those that require grad have a history that leads to the arguments and
  /// is refused (refuse_backward) when the engine comes to it.
  bool answer(torch::jit::Stack*);
  /// After the call has run: remembers what it gave, if that is fresh tensors only.
  void remember(const torch::jit::Stack& results) const;

 private:
  const OperatorInfo& info_;
  std::string key_;   ///< empty when the call must run
  std::vector<const c10::StorageImpl*> storages_;   ///< of the arguments, when it must run and may be remembered
};

}  // namespace cutaway::trace
