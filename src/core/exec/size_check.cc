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
  if (good_.contains(numbers)) return true;
  if (bad_.contains(numbers)) return false;
  for (auto* known : {&good_, &bad_})
    if (known->size() >= kMostRemembered) known->clear();
  const bool good = check(numbers);
  (good ? good_ : bad_).insert(numbers);
  return good;
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
