#include "diagnosis/oracle/switches.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/capabilities/parts.h"
#include "core/debug/stream_reader.h"

namespace cutaway::oracle {

base::Status check_part(std::string_view part) {
  const std::vector<std::string> parts = capabilities::all_parts();
  if (std::find(parts.begin(), parts.end(), part) != parts.end()) return {};
  return base::Error{"neither Inductor nor native has a part " + base::quote(part) + base::did_you_mean(part, parts), "", "", "one of " + base::join(parts), ""};
}

std::vector<Application> read_applications(std::string_view log) {
  std::vector<Application> found;
  const auto events = debug::parse_events(log, "applications");
  if (!events.ok()) return found;
  for (const debug::StoredEvent& e : *events)
    if (e.name == kApplied) found.push_back({debug::text_or(e, "part"), debug::text_or(e, "name"), debug::integer_or(e, "number"), debug::text_or(e, "node"), debug::text_or(e, "graph"), debug::text_or(e, "place")});
  return found;
}

}  // namespace cutaway::oracle
