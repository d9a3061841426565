// Which floats of a frame may change without another graph: the frame is recorded at other numbers for them, near and far, and the recordings
// are compared. A float that decides the program's way in a manner that no guard can follow stays the number that it is.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/symbolic/search.h"

namespace cutaway::frames {

/// Records with values[i] for float i; floats with moves[i] false are plain numbers in it.
using RecordFloats = std::function<base::Result<symbolic::Recording>(const std::vector<bool>& moves, const std::vector<double>& values)>;

struct FloatsFound {
  std::vector<bool> moves;                  ///< of each float; none true: all stay numbers, and `why` says why
  std::optional<symbolic::Unified> unified;    ///< with the floats that move, in their order; its guards have the range that was recorded, where that ends
  std::string why;
};
/// `asks_python`: functions of Python whose questions nobody sees take floats, so that special numbers are recorded, too.
FloatsFound find_floats(const RecordFloats&, const std::vector<double>& now, const std::function<bool()>& asks_python);

/// Numbers near these, with full mantissas; others each time.
std::vector<double> near_numbers(const std::vector<double>& now, const std::vector<bool>& moves, uint64_t turn);

}  // namespace cutaway::frames
