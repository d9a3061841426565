// The log that people read: a view of the event stream, one line an event (further lines of a text are indented under it).
// Steps 1 capture, 2 backend and 3 native are told when they begin and when they end, so a step that failed is the last
// one without an end.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/debug/events.h"
#include "core/debug/log_filter.h"

namespace cutaway::debug {

/// The numbered steps of a compilation. The number and the topic are what logs and reports call it.
enum class Step : uint8_t { capture = 1, backend = 2, native = 3 };
std::string_view step_topic(Step);
/// A phase that is one of the steps: `debug::StepPhase step(sink, debug::Step::capture, function)`.
class StepPhase : public Phase {
 public:
  StepPhase(Sink* sink, Step step, std::string_view function)
      : Phase(sink, step_topic(step), step_topic(step), {{"step", static_cast<int>(step)}, {"function", function}}) {
    note("step", static_cast<int>(step));   // the end tells it too: a log has no memory
    note("function", function);
  }
};

struct LogStyle {
  bool time = true;          ///< seconds since the process began to record
  std::string prefix = "cutaway ";
};
/// The text of an event, with its newline at the end.
std::string log_line(const Event&, const LogStyle&);

/// Gives each line that the filter shows to `write_line`, which must bear being called from several threads.
std::unique_ptr<Sink> make_log(LogFilter, std::function<void(std::string_view line)> write_line, LogStyle = {});

}  // namespace cutaway::debug
