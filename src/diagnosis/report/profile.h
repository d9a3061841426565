// profile.json beside a bundle: where the time of its compiled graphs went (docs/formats/report_inputs.md).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace cutaway::report {

struct ProfileStep {
  std::string name, kind, computes, place, text;
  int64_t calls = 0, bytes = 0, operations = 0;
  double seconds = 0, share_of_bandwidth = 0, share_of_operations = 0;   ///< shares of the machine's limits; 0: not known
};
struct ProfiledGraph {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  std::vector<ProfileStep> steps;
};
struct Profile {
  std::vector<ProfiledGraph> graphs;
  double bytes_per_s = 0, operations_per_s = 0;   ///< of the machine; 0: not measured
  int64_t threads = 0;
};
base::Result<Profile> profile_from_json(std::string_view text, std::string_view place);
/// A heading for each graph, and a table of its steps, the longest first, each with its text to unfold.
std::string profile_html(const Profile&);

}  // namespace cutaway::report
