// One function, two uses: libFuzzer's entry where fuzz targets are built (-DCUTAWAY_FUZZ=ON), and in the test program a case that
// replays tests/fuzz/<name>/: the small corpus and every input that once broke something.
//
//   CUTAWAY_FUZZ_TARGET(manifest) { read(input); }      // `input` is a std::string_view; failing means CUTAWAY_FUZZ_REQUIRE
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// Stops the program: a fuzzer keeps the input, a test run shows the line.
#define CUTAWAY_FUZZ_REQUIRE(condition)                                                     \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);        \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)

#if defined(CUTAWAY_LIBFUZZER)

#define CUTAWAY_FUZZ_TARGET(name)                                                           \
  static void fuzz_##name(std::string_view input);                                          \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {                \
    fuzz_##name({reinterpret_cast<const char*>(data), bytes});                              \
    return 0;                                                                               \
  }                                                                                         \
  static void fuzz_##name(std::string_view input)

#else

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace cutaway::fuzz {
inline void replay(const char* name, void (*target)(std::string_view)) {
  const std::filesystem::path corpus = std::filesystem::path(CUTAWAY_SOURCE_DIR) / "tests" / "fuzz" / name;
  REQUIRE_MESSAGE(std::filesystem::is_directory(corpus), corpus.string(), " is missing");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE_MESSAGE(!files.empty(), corpus.string(), " is empty");
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    REQUIRE_MESSAGE(!in.bad(), file.string());
    target(input);
  }
}
}  // namespace cutaway::fuzz

#define CUTAWAY_FUZZ_TARGET(name)                                                           \
  static void fuzz_##name(std::string_view input);                                          \
  TEST_CASE("fuzz: replay tests/fuzz/" #name) { cutaway::fuzz::replay(#name, fuzz_##name); } \
  static void fuzz_##name(std::string_view input)

#endif
