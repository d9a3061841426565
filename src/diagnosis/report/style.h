// The one style sheet of report.html: light and dark by the reader's setting, readable from a phone to a wide screen, and on paper.
#pragma once
#include <string_view>

namespace cutaway::report {

extern const std::string_view kStyle;

}  // namespace cutaway::report
