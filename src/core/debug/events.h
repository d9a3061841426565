// One stream of structured events: phases with begin and end, decisions with reasons, counters, artifacts.
// Logs, compile_times(), the debug directory and reports are views of it. docs/formats/events.md is its document.
// Everything takes a Sink* that may be null: then nothing is built, formatted or allocated.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace cutaway::debug {

/// Ordered by weight; names "error", "warning", "info", "debug".
enum class Level : uint8_t { error = 0, warning = 1, info = 2, debug = 3 };
std::string_view level_name(Level);

using FieldValue = std::variant<bool, int64_t, double, std::string>;
struct Field { std::string_view key; FieldValue value; };

/// kinds: "begin", "end", "decision", "counter", "artifact", "message".
struct Event {
  std::string_view kind;
  std::string_view topic;   ///< "capture", "aot", "native", "trace", "exec", "store", "minify", … the vocabulary of CUTAWAY_LOGS
  std::string_view name;    ///< of the phase, decision, counter or artifact
  Level level = Level::info;
  uint64_t time_us = 0;     ///< since the stream began
  uint64_t phase = 0;       ///< begin and end: number of the phase; others: the phase they happened in (0: none)
  std::vector<Field> fields;
};

/// Where events go. Thread-safe.
struct Sink {
  virtual ~Sink() = default;
  virtual void write(const Event&) = 0;
  /// False lets a caller skip building an expensive event (a printed graph).
  virtual bool wants(std::string_view topic, Level) const = 0;
};

/// A phase: writes "begin" now and "end" with its duration when destroyed, also while an exception flies ("failed": true).
class Phase {
 public:
  Phase(Sink* sink, std::string_view topic, std::string_view name, std::initializer_list<Field> fields = {});
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  /// Added to the "end" event.
  void note(std::string_view key, FieldValue value);

 private:
  Sink* sink_;
  std::string topic_, name_;
  uint64_t number_ = 0, outer_ = 0, start_us_ = 0;
  int exceptions_ = 0;
  std::vector<std::pair<std::string, FieldValue>> notes_;
};
void decide(Sink*, std::string_view topic, std::string_view name, std::string_view reason, std::initializer_list<Field> fields = {}, Level = Level::info);
void count(Sink*, std::string_view topic, std::string_view name, int64_t delta = 1);
void say(Sink*, std::string_view topic, Level, std::string_view text);
/// Tells of a file that was written.
void artifact(Sink*, std::string_view topic, std::string_view name, std::string_view path);

/// JSON lines, one write(2) an event so that a killed process leaves whole lines.
base::Result<std::unique_ptr<Sink>> open_event_file(const std::string& path);
/// Several sinks as one; nulls are skipped. Does not own them.
std::unique_ptr<Sink> tee(std::vector<Sink*>);

/// An event read back; owns its text.
struct StoredEvent {
  std::string kind, topic, name, level;
  uint64_t time_us = 0, phase = 0;
  std::vector<std::pair<std::string, FieldValue>> fields;
};
/// Reads a stream; a half-written last line is left out, any other bad line is an error with its number.
base::Result<std::vector<StoredEvent>> read_events(const std::string& path);
/// The innermost phase that began and did not end: the step that failed. Empty when all ended.
std::string last_unfinished_phase(const std::vector<StoredEvent>&);

}  // namespace cutaway::debug
