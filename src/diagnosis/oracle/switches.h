// Which parts of a compiler a trial runs without, and what a trial writes down about the parts that it used. Text and data only: what a part
// is, and how it is switched off, is the Python worker's business (cutaway._inductor_parts). docs/formats/worker.md is the document.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace cutaway::oracle {

/// A part is applied many times in one compilation; applications count from 0, each part by itself.
struct Switches {
  std::map<std::string, int64_t> limits;         ///< part -> only so many applications happen, the first ones
  std::vector<std::string> without;              ///< "part" or "part:name": no application, or none of that name
  std::map<std::string, std::string> options;    ///< of Inductor, as JSON text; they hold for the whole trial
  std::string code, write_code, profile;         ///< of native: a file with kernels in place of the generated ones; where the generated program goes, and its profile
  std::string log;                               ///< file to which every application is appended; empty: none
  bool empty() const { return limits.empty() && without.empty() && options.empty() && log.empty() && code.empty() && write_code.empty() && profile.empty(); }
  /// Empty text when there is nothing to switch.
  std::string to_json() const;
};

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
