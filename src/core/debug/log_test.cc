#include "core/debug/log.h"

#include <doctest/doctest.h>

namespace log_test {

using namespace cutaway;
using namespace cutaway::debug;

namespace {
struct Lines {
  std::string text;
  std::unique_ptr<Sink> sink;
  explicit Lines(std::string_view words)
      : sink(make_log(*parse_logs(words, "test"), [this](std::string_view line) { text += line; }, {.time = false, .prefix = "cutaway "})) {}
};
std::string line_of(const Event& e) { return log_line(e, {.time = false, .prefix = ""}); }
}  // namespace

TEST_CASE("each kind of event is one readable line") {
  const Field begin[] = {{"step", 1}, {"function", "toy (script.py:4)"}};
  CHECK(line_of({"begin", "capture", "capture", Level::info, 0, 1, 0, 1, begin}) == "capture: step 1 capture begins  function=toy (script.py:4)\n");
  const Field end[] = {{"duration_us", 2500}, {"step", 1}, {"graphs", 3}};
  CHECK(line_of({"end", "capture", "capture", Level::info, 0, 1, 0, 1, end}) == "capture: step 1 capture done in 2.5 ms  graphs=3\n");
  const Field failed[] = {{"duration_us", 12}, {"failed", true}, {"error", "no lowering"}};
  CHECK(line_of({"end", "native", "lower", Level::info, 0, 1, 0, 1, failed}) == "native: lower FAILED after 12 us: no lowering\n");
  const Field decision[] = {{"reason", "has an effect"}, {"line", 6}, {"ratio", 0.25}, {"again", false}};
  CHECK(line_of({"decision", "breaks", "print", Level::warning, 0, 0, 0, 1, decision}) == "breaks warning: print: has an effect  line=6  ratio=0.25  again=false\n");
  const Field counter[] = {{"delta", 2}};
  CHECK(line_of({"counter", "cache", "hit", Level::info, 0, 0, 0, 1, counter}) == "cache: hit +2\n");
  const Field artifact[] = {{"path", "/a/b"}};
  CHECK(line_of({"artifact", "native", "output_code.cpp", Level::info, 0, 0, 0, 1, artifact}) == "native: wrote output_code.cpp: /a/b\n");
  const Field text[] = {{"text", "graph f {\n  %y\n}\n"}};
  CHECK(line_of({"message", "graph", "", Level::debug, 0, 0, 0, 1, text}) == "graph debug: graph f {\n      %y\n    }\n");
  CHECK(log_line({"message", "graph", "", Level::info, 1234567, 0, 0, 1, text}, {}).starts_with("cutaway 1.2346 graph: graph f {\n"));
  CHECK(line_of({"end", "aot", "x", Level::info, 0, 0, 0, 1, {}}) == "aot: x done in 0 us\n");
}

TEST_CASE("by default the log has graph breaks and no steps") {
  Lines log("");
  StepPhase step(log.sink.get(), Step::capture, "toy");
  decide(log.sink.get(), "breaks", "print", "has an effect", {}, Level::warning);
  say(log.sink.get(), "capture", Level::info, "not shown");
  CHECK(log.text == "cutaway breaks warning: print: has an effect\n");
}

TEST_CASE("the step that is not over is the last one that began without an end") {
  Lines log("capture,backend,native");
  { StepPhase capture(log.sink.get(), Step::capture, "toy"); }
  StepPhase backend(log.sink.get(), Step::backend, "toy");
  StepPhase native(log.sink.get(), Step::native, "toy");
  std::string text = log.text;
  const size_t digits = text.find(" done in ");   // the time is the clock's
  text.erase(digits + 9, text.find(" us", digits) - digits - 9);
  CHECK(text ==
        "cutaway capture: step 1 capture begins  function=toy\n"
        "cutaway capture: step 1 capture done in  us  function=toy\n"
        "cutaway backend: step 2 backend begins  function=toy\n"
        "cutaway native: step 3 native begins  function=toy\n");
}

}  // namespace log_test
