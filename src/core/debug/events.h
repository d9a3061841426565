// One stream of structured events: phases with begin and end, decisions with reasons, counters, artifacts.
// Logs, compile_times(), the debug directory and reports are views of it. docs/formats/events.md is its document.
// Everything takes a Sink* that may be null: then nothing is built, formatted or allocated.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace cutaway::debug {

/// Ordered by weight; names "error", "warning", "info", "debug". Persisted by name, so the numbers may change.
enum class Level : uint8_t { error = 0, warning = 1, info = 2, debug = 3 };
std::string_view level_name(Level);

/// What a field holds once it is stored.
using FieldValue = std::variant<bool, int64_t, double, std::string>;

/// What a field holds at the call: text is not copied, so that a call with a null sink allocates nothing. Any integer,
/// floating-point number, bool or text converts to it.
class FieldView {
 public:
  FieldView(bool value) : value_(value) {}
  template <std::integral T> requires(!std::same_as<T, bool>) FieldView(T value) : value_(static_cast<int64_t>(value)) {}
  template <std::floating_point T> FieldView(T value) : value_(static_cast<double>(value)) {}
  FieldView(std::string_view value) : value_(value) {}
  FieldView(const char* value) : value_(std::string_view(value)) {}
  FieldView(const std::string& value) : value_(std::string_view(value)) {}
  FieldView(const FieldValue&);
  const std::variant<bool, int64_t, double, std::string_view>& get() const { return value_; }
  /// The text of a text field, else an empty one.
  std::string_view text() const;
  /// The number of an integer field, else `otherwise`.
  int64_t integer(int64_t otherwise = 0) const;
  /// A copy that owns its text.
  FieldValue stored() const;

 private:
  std::variant<bool, int64_t, double, std::string_view> value_;
};
/// Made for the call it is an argument of; keep no Field beyond it.
struct Field {
  std::string_view key;
  FieldView value;
};

/// Fields that were put together at run time; a braced list is the usual way to give them.
struct FieldList {
  explicit FieldList(std::span<const Field> list) : fields(list) {}
  FieldList(std::initializer_list<Field> list) : fields(list.begin(), list.size()) {}
  std::span<const Field> fields;
};

/// kinds: "begin", "end", "decision", "counter", "artifact", "message". All text is borrowed for the time of Sink::write.
struct Event {
  std::string_view kind;
  std::string_view topic;   ///< "capture", "breaks", "aot", "native", …: the vocabulary of CUTAWAY_LOGS (topics.h)
  std::string_view name;    ///< of the phase, decision, counter or artifact; empty for a message
  Level level = Level::info;
  uint64_t time_us = 0;     ///< now_us() when it happened; a file counts from its own beginning
  uint64_t phase = 0;       ///< begin and end: number of the phase; others: the phase they happened in (0: none)
  uint64_t outer = 0;       ///< begin and end: the phase around it (0: none)
  uint32_t thread = 0;      ///< 1 for the first thread that said something, 2 for the second, …
  std::span<const Field> fields;
  /// The value of a field, or null.
  const FieldView* find(std::string_view key) const;
};

/// A text that may become a file of the debug directory.
struct ArtifactText {
  std::string_view component;  ///< "capture", "aot", "native", …: the folder
  std::string_view graph;      ///< name of the compiled graph, or empty: a file beside the graphs' folders
  std::string_view file;       ///< "output_code.cpp": the part before the dot is one of debug_directory.h's names
  std::string_view text;
};

/// Where events go. Thread-safe. A sink that stands beside others is given what any of them wanted: it drops the rest itself.
struct Sink {
  virtual ~Sink() = default;
  virtual void write(const Event&) = 0;
  /// False lets a caller skip building an event, an expensive one (a printed graph) above all.
  virtual bool wants(std::string_view topic, Level) const = 0;
  /// The same for the begin and end of phases, which some sinks want while they want nothing else.
  virtual bool wants_phase(std::string_view topic, Level level) const { return wants(topic, level); }
  /// Whether keep_file would write a file of this name.
  virtual bool keeps_file(std::string_view /*file*/) const { return false; }
  /// Writes it; returns the path, or an empty text when it was not kept.
  virtual std::string keep_file(const ArtifactText&) { return {}; }
};

/// Microseconds of a clock that never goes back, since this was first asked in this process.
uint64_t now_us();

namespace detail {
struct PhaseState;
void decide(Sink&, std::string_view topic, std::string_view name, std::string_view reason, std::span<const Field>, Level);
void count(Sink&, std::string_view topic, std::string_view name, int64_t delta);
void say(Sink&, std::string_view topic, Level, std::string_view text);
void artifact(Sink&, std::string_view topic, std::string_view name, std::string_view path);
}  // namespace detail

/// A phase: writes "begin" now and "end" with its duration when destroyed, also while an exception flies ("failed": true).
/// Phases of one thread and one sink nest: an event tells the innermost one around it. Where the sink is null or does not
/// want the phase it is one null pointer.
class Phase {
 public:
  Phase(Sink* sink, std::string_view topic, std::string_view name, FieldList fields = FieldList({}), Level level = Level::info) {
    if (sink && sink->wants_phase(topic, level)) begin(*sink, topic, name, fields.fields, level);
  }
  ~Phase() { if (state_) end(); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  /// Added to the "end" event; a second value for a key replaces the first.
  void note(std::string_view key, FieldView value) { if (state_) add_note(key, value); }
  /// For code that returns a Result: the "end" event will say "failed" and why.
  void fail(std::string_view error) { if (state_) mark_failed(error); }
  /// 0 when nothing listens.
  uint64_t number() const;

 private:
  void begin(Sink&, std::string_view topic, std::string_view name, std::span<const Field>, Level);
  void end() noexcept;
  void add_note(std::string_view key, FieldView);
  void mark_failed(std::string_view);
  std::shared_ptr<detail::PhaseState> state_;
};

/// True when an event of this kind would be seen: ask before building something expensive.
inline bool wants(const Sink* sink, std::string_view topic, Level level) { return sink && sink->wants(topic, level); }
/// Something was decided, for this reason.
inline void decide(Sink* sink, std::string_view topic, std::string_view name, std::string_view reason, FieldList fields = FieldList({}), Level level = Level::info) {
  if (wants(sink, topic, level)) detail::decide(*sink, topic, name, reason, fields.fields, level);
}
inline void count(Sink* sink, std::string_view topic, std::string_view name, int64_t delta = 1) {
  if (wants(sink, topic, Level::info)) detail::count(*sink, topic, name, delta);
}
inline void say(Sink* sink, std::string_view topic, Level level, std::string_view text) {
  if (wants(sink, topic, level)) detail::say(*sink, topic, level, text);
}
/// Tells of a file that was written.
inline void artifact(Sink* sink, std::string_view topic, std::string_view name, std::string_view path) {
  if (wants(sink, topic, Level::info)) detail::artifact(*sink, topic, name, path);
}
/// Leaves a file in the debug directory and tells of it; `build` makes the text and runs only when the file is wanted.
template <std::invocable Build>
void keep_artifact(Sink* sink, std::string_view component, std::string_view graph, std::string_view file, Build&& build) {
  if (!sink || !sink->keeps_file(file)) return;
  const std::string text(build());
  if (const std::string path = sink->keep_file({component, graph, file, text}); !path.empty()) artifact(sink, component, file, path);
}

struct EventFileOptions {
  enum class Existing { append, replace } existing = Existing::append;  ///< append is safe with several processes on one file
  Level most = Level::debug;                                            ///< events above it are left out
  std::function<void(const base::Error&)> on_error;                     ///< told once when a write fails; the stream ends there
};
/// JSON lines, one write(2) an event so that a killed process leaves whole lines.
base::Result<std::unique_ptr<Sink>> open_event_file(const std::string& path, EventFileOptions options = {});
/// Several sinks as one; nulls are skipped. Does not own them.
std::unique_ptr<Sink> tee(std::vector<Sink*>);

/// An event read back; owns its text.
struct StoredEvent {
  std::string kind, topic, name, level;
  uint64_t time_us = 0, phase = 0, outer = 0;
  uint32_t thread = 0;
  int64_t pid = 0;
  std::vector<std::pair<std::string, FieldValue>> fields;
  const FieldValue* find(std::string_view key) const;
};
/// Reads a stream; a half-written last line is left out, any other bad line is an error with its number.
base::Result<std::vector<StoredEvent>> read_events(const std::string& path);
/// The same from memory; `place` stands for the path in errors.
base::Result<std::vector<StoredEvent>> parse_events(std::string_view text, std::string_view place);
/// The innermost phase that began and did not end: the step that failed when a process was killed. Empty when all ended.
std::string last_unfinished_phase(const std::vector<StoredEvent>&);
/// The step that failed: the last unfinished phase, else the innermost one that ended as failed last. Empty when none did.
std::string failing_phase(const std::vector<StoredEvent>&);

}  // namespace cutaway::debug
