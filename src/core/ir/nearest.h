// "did you mean": the nearest known word.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::ir {

/// `; did you mean "f32"?` with `prefix` before the word inside the quotes, or empty when nothing is near enough.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix = {});

}  // namespace cutaway::ir
