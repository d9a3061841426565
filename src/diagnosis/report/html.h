// Text that goes into a page: escaping, and numbers written the same way under every locale.
// Everything that comes from a bundle passes through escape(); a bundle may come from a stranger.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cutaway::report {

/// Safe as text and inside a double-quoted attribute of HTML and SVG. Bytes that are not UTF-8 become U+FFFD; control characters, and
/// those that would reorder the text around them, are spelled out ("\u202e"). Newlines and tabs stay.
std::string escape(std::string_view text);
/// At most `most` characters (code points), the middle replaced by "…".
std::string shorten(std::string_view text, size_t most);
/// Code points; bytes that are not UTF-8 count one each.
size_t count_characters(std::string_view text);

/// A page up to and with `<body>`: the style, and a policy that lets nothing be loaded, a second wall behind escape().
std::string page_head(std::string_view title);

/// "12.5": at most `digits` after the point, trailing zeros left out.
std::string fixed(double value, int digits = 1);
/// "3.1e-07", "0", "inf", "nan".
std::string scientific(double value);
/// "0.21 s", "35 s", "12 min 5 s".
std::string duration(double seconds);
/// "50 %"; never rounded to 0 % or 100 % when it is neither.
std::string percent(double rate);
/// One word of a command line: as it is where that is safe, else in single quotes; a leading "-" becomes "./-".
std::string shell_word(std::string_view path);

}  // namespace cutaway::report
