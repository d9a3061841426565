#include "core/symbolic/guard.h"

namespace cutaway::symbolic {

std::string Guard::text() const {
  constexpr const char* words[] = {" == ", " != ", " < ", " <= "};
  return left.text() + words[static_cast<size_t>(kind)] + right.text();
}

}  // namespace cutaway::symbolic
