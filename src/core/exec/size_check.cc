#include "core/exec/size_check.h"

#include <c10/util/Exception.h>

#include "core/exec/interpreter.h"

namespace cutaway::exec {

namespace {
constexpr size_t kMostRemembered = 4096;
}

bool SizeCheck::holds(const std::vector<int64_t>& numbers) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(numbers); known != known_.end()) return known->second;
  if (known_.size() >= kMostRemembered) known_.clear();
  return known_[numbers] = check(numbers);
}

bool SizeCheck::check(const std::vector<int64_t>& numbers) const {
  try {
    const auto said = symbolic::at_sizes(graph_, {symbols_, numbers});
    if (!said.ok()) return false;
    const auto given = infer_types(*said);
    if (!given.ok()) return false;
    for (size_t v = 0; v < said->values.size(); ++v) {
      const ir::Type &a = said->values[v].type, &b = given->values[v].type;
      if (a.is_tensor() && b.is_tensor() && a.tensor.sizes != b.tensor.sizes) return false;
    }
    return true;
  } catch (const c10::Error&) {   // the operators do not take these sizes, or a number of theirs cannot be computed
    return false;
  }
}

}  // namespace cutaway::exec
