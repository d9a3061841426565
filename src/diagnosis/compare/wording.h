// Numbers, counts, indices and limits as a reader wants them in a verdict.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::compare {

std::string number_text(double);                       ///< six significant digits: "1.25e-05", "nan", "inf", "-inf"
std::string count_text(int64_t);                       ///< "1,048,576"
std::string index_text(const std::vector<int64_t>&);   ///< "[3, 7]"

}  // namespace cutaway::compare
