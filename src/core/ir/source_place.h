// From a byte in a text to what a message shows: line, column, the line itself and a caret under it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::ir {

/// Both count from 1; columns count characters (UTF-8 code points), not bytes.
struct Place {
  size_t line = 1;
  size_t column = 1;
};
Place place_of(std::string_view text, size_t offset);

/// An error at text[offset, offset + length) with place "file:line:column" and the excerpt:
///    13 |   %y: f32[2, 64] = aten.relu(%h)
///       |                              ^^
/// Long lines are cut around the caret; characters that would act on a terminal are shown as '?'.
base::Error error_at(std::string_view text, std::string_view file, size_t offset, size_t length, std::string what,
                     std::string because = {}, std::string hint = {});

}  // namespace cutaway::ir
