// Text inside of HTML and SVG.
#pragma once
#include <string>
#include <string_view>

namespace cutaway::base {

/// With <, >, & and double quotes as entities: it stays text, in an attribute too.
std::string escape_markup(std::string_view text);

}  // namespace cutaway::base
