// Words for people: quoting, joining, sizes, and the nearest known name when somebody mistypes one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::base {

/// In double quotes, with control characters, quotes and backslashes escaped; never breaks a line or a terminal.
std::string quote(std::string_view text);
/// "a, b, c".
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");
/// "1 blob", "3 blobs".
std::string count_of(uint64_t n, std::string_view noun);
/// "17 bytes", "4.1 kB", "268 MB": powers of 1000, three digits.
std::string human_bytes(uint64_t bytes);

/// The known name that was probably meant: few enough edits (insert, remove, change, swap neighbours) for its length, upper and
/// lower case alike. Empty when none is near; the first of equals.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);
/// `; did you mean "inductor"?`, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

/// Well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);
/// Length in bytes of the well-formed sequence at the start of `text`; 0 when there is none.
size_t utf8_length(std::string_view text);

}  // namespace cutaway::base
