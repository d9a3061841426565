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

/// Why the engine stops inside a recording above autograd.
inline constexpr const char* kBackwardRefused = "backward inside a recording above autograd is refused: record below autograd to see it";

/// One call, before it runs.
class MemoizedCall {
 public:
  MemoizedCall(const OperatorInfo&, const torch::jit::Stack&);
  /// Puts results in place of the arguments when the call is known. Those that require grad have a history that leads to the arguments and
  /// raises kBackwardRefused when the engine comes to it.
  bool answer(torch::jit::Stack*);
  /// After the call has run: remembers what it gave, if that is fresh tensors only.
  void remember(const torch::jit::Stack& results) const;

 private:
  const OperatorInfo& info_;
  std::string key_;   ///< empty when the call must run
  std::vector<const c10::StorageImpl*> storages_;   ///< of the arguments, when it must run and may be remembered
};

}  // namespace cutaway::trace
