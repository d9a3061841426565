#include "core/base/result.h"

namespace cutaway::base {

std::string Error::text() const {
  std::string out;
  if (!place.empty()) out += place + ": ";
  out += what;
  if (!excerpt.empty()) out += "\n" + excerpt;
  if (!because.empty()) out += "\n   because: " + because;
  if (!hint.empty()) out += "\n   try: " + hint;
  return out;
}

Error Error::at(std::string_view outer_place) && {
  if (place.empty()) place = outer_place;
  return std::move(*this);
}

}  // namespace cutaway::base
