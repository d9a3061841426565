#include "core/ir/nearest.h"

#include "core/base/text.h"

namespace cutaway::ir {

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix) {
  const std::string found = base::nearest_name(word, {known.begin(), known.end()});
  return found.empty() ? std::string() : "; did you mean " + base::quote(std::string(prefix) + found) + "?";
}

}  // namespace cutaway::ir
