// What the user can do about a reason for which a graph ends, by its id. A place that knows more says it itself.
#pragma once
#include <string_view>

namespace cutaway::capture {

/// Empty for what needs nothing: what the user asked for, or what runs eagerly for its own sake.
std::string_view hint_for(std::string_view id);

}  // namespace cutaway::capture
