// The parts of compilers by name, and what a trial writes down about those that it used. Text and data only: what a part of Inductor is, and how it
// is switched off, is the Python worker's business (cutaway._inductor_parts). docs/formats/worker.md is the document.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/capabilities/switches.h"

namespace cutaway::oracle {

using capabilities::Switches;

/// An Error that names the nearest part.
base::Status check_part(std::string_view part);

/// The name of the event for one application of a part; its fields are those of Application. Written by native and by cutaway._inductor_parts.
inline constexpr std::string_view kApplied = "applied";
struct Application {
  std::string part, name;
  int64_t number = 0;
  std::string node;     ///< of the graph, or what else was worked on
  std::string graph;    ///< which of the graphs that one compilation makes (forward, backward, …); empty: there is one
  std::string place;    ///< the user's line
};
/// Of a stream of events. A line that a dying child left unfinished is skipped.
std::vector<Application> read_applications(std::string_view log);

}  // namespace cutaway::oracle
