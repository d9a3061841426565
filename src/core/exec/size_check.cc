#include "core/exec/size_check.h"

#include <c10/util/Exception.h>

#include "core/exec/interpreter.h"

namespace cutaway::exec {

namespace {
constexpr size_t kMostRemembered = 4096;
}

bool SizeCheck::holds(const SymbolValues& values) {
  std::vector<int64_t> numbers;
  for (const std::string& s : symbols_) numbers.push_back(values.at(s));
  return holds(numbers);
}

bool SizeCheck::holds(const std::vector<int64_t>& numbers) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(numbers); known != known_.end()) return known->second;
  if (known_.size() >= kMostRemembered) known_.clear();
  return known_[numbers] = check(numbers);
}

bool SizeCheck::check(const std::vector<int64_t>& numbers) const {
  SymbolValues values;
  for (size_t i = 0; i < symbols_.size(); ++i) values.emplace(symbols_[i], numbers[i]);
  try {
    const ir::Graph said = at_sizes(graph_, values);
    const auto given = infer_types(said);
    if (!given.ok()) return false;
    for (size_t v = 0; v < said.values.size(); ++v) {
      const ir::Type &a = said.values[v].type, &b = given->values[v].type;
      if (a.is_tensor() && b.is_tensor() && a.tensor.sizes != b.tensor.sizes) return false;
    }
    return true;
  } catch (const c10::Error&) {   // the operators do not take these sizes, or a number of theirs cannot be computed
    return false;
  }
}

}  // namespace cutaway::exec
