// Names of values of a graph as names in C++ text.
#pragma once
#include <cctype>
#include <set>
#include <string>

namespace cutaway::codegen {

/// A C++ name made of a value's: the same one twice gets a number.
class Names {
 public:
  std::string of(const std::string& given) {
    std::string s;
    for (char c : given) s += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "v" + s;
    s += "_";   // never a keyword, a type or a function of ours
    std::string name = s;
    for (int i = 1; !used_.insert(name).second; ++i) name = s + std::to_string(i);
    return name;
  }

 private:
  std::set<std::string> used_;
};

}  // namespace cutaway::codegen
