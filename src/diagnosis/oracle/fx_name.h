// How fx writes the name of a value of ours: what a compiler calls it.
#pragma once
#include <algorithm>
#include <string>

namespace cutaway::oracle {

/// '_' for '.', and "v" before a digit.
inline std::string fx_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return !name.empty() && name[0] >= '0' && name[0] <= '9' ? "v" + name : name;
}

}  // namespace cutaway::oracle
