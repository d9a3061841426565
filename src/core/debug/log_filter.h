// Which events a log shows: a level a topic. Parsed from CUTAWAY_LOGS, from set_logs(), and from torch's TORCH_LOGS.
// A word is a topic: alone it shows a component at "info" and a detail whole; "+word" shows all of it, "-word" its errors only,
// "word=level" that level. "all" is every topic, and a level alone is "all" at that level.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/debug/events.h"

namespace cutaway::debug {

class LogFilter {
 public:
  /// Warnings and errors of every topic: what is shown when nobody asked.
  LogFilter();
  bool shows(std::string_view topic, Level level) const { return level <= loudest_ && level <= level_of(topic); }
  Level level_of(std::string_view topic) const;
  /// The most detailed level that any topic has.
  Level loudest() const { return loudest_; }
  /// As words that parse to the same filter: "all=warning,capture=debug".
  std::string text() const;
  bool operator==(const LogFilter&) const = default;

 private:
  friend class LogWords;
  std::vector<Level> levels_;   // a topic of topics() each
  Level rest_;                  // topics outside the table
  Level loudest_;
};

/// The words of our own variable or of set_logs(); torch's words are understood too. An unknown one is an error with the
/// nearest name. `place` is what errors name ("CUTAWAY_LOGS"). Specific words win over general ones ("all", then components,
/// then details) wherever they stand; among equals the later one wins. Topics that no word names keep what `start` says.
base::Result<LogFilter> parse_logs(std::string_view words, std::string_view place, const LogFilter& start = {});
/// The words of TORCH_LOGS. What has no counterpart here is left out, with a line in `notes`: torch reads the variable too.
LogFilter parse_torch_logs(std::string_view words, std::vector<std::string>& notes, const LogFilter& start = {});

}  // namespace cutaway::debug
