// Runs golden cases: a file is "run: <what>" in its first line, the input, a line "----", the expected text. CUTAWAY_UPDATE_GOLDEN=1 rewrites expectations.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace cutaway::testing {

/// Checks answer(what, input) for each .cut file of the folder; returns how many there are.
template <class Answer> size_t run_golden_cases(std::string_view folder, Answer&& answer) {
  const char* update = std::getenv("CUTAWAY_UPDATE_GOLDEN");
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(CUTAWAY_SOURCE_DIR) / folder)) {
    if (entry.path().extension() != ".cut") continue;
    ++count;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const size_t first = text.find('\n'), bar = text.find("\n----\n");
    REQUIRE(text.starts_with("run: "));
    REQUIRE(bar != std::string::npos);
    const std::string actual = answer(text.substr(5, first - 5), text.substr(first + 1, bar - first));
    if (update && *update == '1') std::ofstream(entry.path(), std::ios::binary) << text.substr(0, bar) << "\n----\n" << actual;
    else CHECK(actual == text.substr(bar + 6));
  }
  return count;
}

}  // namespace cutaway::testing
