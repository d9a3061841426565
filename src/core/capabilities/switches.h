// Which parts of a compiler run, and how often: what a debugger asks of a backend. docs/formats/worker.md has the JSON form.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace cutaway::capabilities {

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
  /// The other way; empty text is nothing. Refuses fields and kinds that it does not know.
  static base::Result<Switches> from_json(std::string_view);
};

}  // namespace cutaway::capabilities
