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

/// The parts of Inductor and of native, as `--without` and `--limit` name them, in the order in which a compilation comes to them.
const std::vector<std::string>& inductor_parts();
const std::vector<std::string>& native_parts();
/// An Error that names the nearest part.
base::Status check_part(std::string_view part);

/// One application of a part, as the log tells it.
struct Application {
  std::string part, name;
  int64_t number = 0;
  std::string node;     ///< of the graph, or what else was worked on
  std::string graph;    ///< which of the graphs that one compilation makes (forward, backward, …); empty: there is one
  std::string place;    ///< the user's line
};
/// Lines that a dying child left unfinished are skipped.
std::vector<Application> read_applications(std::string_view log);

}  // namespace cutaway::oracle
