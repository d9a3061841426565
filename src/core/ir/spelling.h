// How small things are spelled in the text form: words, strings, floating-point numbers, devices, types.
// Shared by the printer, the parser and the verifier, so that they cannot disagree. Not for use outside core/ir.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ir/type.h"

namespace cutaway::ir {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_word_char(char c) { return is_word_start(c) || is_digit(c); }
inline bool is_name_char(char c) { return is_word_char(c) || c == '.'; }

/// Letters, digits and '_', not starting with a digit.
bool is_identifier(std::string_view);
/// Identifiers joined by dots: "aten.add.Tensor".
bool is_dotted_identifier(std::string_view);
/// Name of a value, without its "%": one or more of letters, digits, '_' and '.'.
bool is_value_name(std::string_view);
/// "s0", "s12": a symbol that stands for itself in an argument. Others are written sym(…), since "u8" is a dtype.
bool is_bare_symbol(std::string_view);
/// A device type that is written as a bare word. "mkldnn" is not, because a layout has that name.
bool is_bare_device_type(std::string_view);

/// In double quotes. UTF-8 is kept; control characters, direction overrides and bytes that are not UTF-8 are escaped.
void write_quoted(std::string& out, std::string_view);
/// Shortest digits that read back the same, and never the spelling of an integer: "2.0", "1e+300", "-0.0", "inf", "nan".
void write_float(std::string& out, double);
void write_integer(std::string& out, int64_t);
void write_dim(std::string& out, const Dim&);
void write_device(std::string& out, const Device&);   ///< cuda:0, or device("…")
void write_type(std::string& out, const Type&);

/// Length of the UTF-8 sequence at `at`, or 0 when it is not one (truncated, overlong, surrogate, too large).
size_t utf8_length(std::string_view text, size_t at);

}  // namespace cutaway::ir
