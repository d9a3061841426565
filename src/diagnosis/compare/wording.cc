#include "diagnosis/compare/wording.h"

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace cutaway::compare {

std::string number_text(double v) {
  if (std::isnan(v)) return "nan";   // printf may write "-nan"
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

std::string count_text(int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return n < 0 ? "-" + out : out;
}

std::string index_text(const std::vector<int64_t>& index) {
  std::string out = "[";
  for (size_t i = 0; i < index.size(); ++i) out += (i ? ", " : "") + std::to_string(index[i]);
  return out + "]";
}

}  // namespace cutaway::compare
