#include "core/debug/recorder.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>

#include "core/debug/memory_sink.h"
#include "core/debug/process.h"

namespace recorder_test {

using namespace cutaway;
using namespace cutaway::debug;

namespace {
base::Result<Settings> settings_of(std::map<std::string, std::string> variables) {
  return from_environment([variables](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}
std::string error_of(std::map<std::string, std::string> variables) {
  auto r = settings_of(std::move(variables));
  return r.ok() ? "no error" : r.error().text();
}
}  // namespace

TEST_CASE("an empty environment is quiet") {
  auto s = settings_of({});
  REQUIRE(s.ok());
  CHECK(s->logs == LogFilter());
  CHECK(s->files.ladder() == Ladder::off);
  CHECK(s->debug_root == ".");
  CHECK(s->events_file.empty());
  CHECK(s->notes.empty());
  CHECK(s->help.empty());
}

TEST_CASE("our variables win over torch's") {
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG", "1"}})->files.ladder() == Ladder::code);
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG", "0"}})->files.ladder() == Ladder::off);
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG", "1"}, {"CUTAWAY_DEBUG", "0"}})->files.ladder() == Ladder::off);
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG", "1"}, {"CUTAWAY_DEBUG", "2"}})->files.ladder() == Ladder::reasons);
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG_DIR", "/t"}})->debug_root == "/t");
  CHECK(settings_of({{"TORCH_COMPILE_DEBUG_DIR", "/t"}, {"CUTAWAY_DEBUG_DIR", "/c"}})->debug_root == "/c");
  auto both = settings_of({{"TORCH_LOGS", "+dynamo,inductor,onnx"}, {"CUTAWAY_LOGS", "-capture,store"}});
  REQUIRE(both.ok());
  CHECK(both->logs == *parse_logs("-capture,native,store", "test"));
  CHECK(both->notes.size() == 1);
  CHECK(settings_of({{"CUTAWAY_DEBUG", "1"}, {"CUTAWAY_DEBUG_FILES", "diagram"}})->files.has("diagram"));
  CHECK(settings_of({{"CUTAWAY_EVENTS", "e.jsonl"}})->events_file == "e.jsonl");
  auto help = settings_of({{"CUTAWAY_LOGS", "help,+aot"}});
  REQUIRE(help.ok());
  CHECK(help->help.find("capture ") != std::string::npos);
  CHECK(help->logs == *parse_logs("+aot", "test"));
}

TEST_CASE("a value that makes no sense is an error that names the variable") {
  CHECK(error_of({{"CUTAWAY_DEBUG", "yes"}}) == "CUTAWAY_DEBUG: \"yes\" is not a level\n   try: 0 (off), 1 (summary), 2 (reasons), 3 (graphs), 4 (code) or 5 (everything)");
  CHECK(error_of({{"CUTAWAY_DEBUG", "6"}}).starts_with("CUTAWAY_DEBUG: \"6\" is not a level"));
  CHECK(error_of({{"CUTAWAY_LOGS", "braeks"}}).starts_with("CUTAWAY_LOGS: unknown topic \"braeks\"; did you mean \"breaks\"?"));
  CHECK(error_of({{"CUTAWAY_DEBUG_FILES", "x"}}).starts_with("CUTAWAY_DEBUG_FILES: "));
}

TEST_CASE("a recorder puts log, times, directory and streams together, and each can change") {
  auto dir = base::TemporaryDirectory::make("recorder");
  std::string out;
  Recorder r({.write_line = [&](std::string_view line) { out += line; }, .stamp = [] { return RunStamp{"t", 1}; }});
  CHECK_FALSE(r.wants("capture", Level::info));
  CHECK(r.wants("capture", Level::warning));
  CHECK(r.wants_phase("capture", Level::info));      // compile_times() wants them
  CHECK_FALSE(r.wants_phase("exec", Level::info));
  CHECK_FALSE(r.keeps_file("events"));
  CHECK(r.directory_path().empty());
  { Phase p(&r, "aot", "split"); }
  CHECK(r.timings().rows().size() == 1);
  CHECK(out.empty());

  r.set_logs(*parse_logs("aot", "test"));
  say(&r, "aot", Level::info, "hello");
  CHECK(out.ends_with("aot: hello\n"));

  auto memory = std::make_shared<MemorySink>();
  r.attach(memory);
  say(&r, "store", Level::debug, "only to memory");
  r.detach(memory.get());
  say(&r, "store", Level::debug, "to nobody");
  CHECK(memory->events().size() == 1);

  out.clear();
  r.set_directory(dir->path().string(), FileChoice(Ladder::graphs));
  keep_artifact(&r, "aot", "g", "graph.cut", [] { return "x"; });
  CHECK(r.directory_path() == (dir->path() / "cutaway_debug/run_t-pid_1").string());
  CHECK(out.starts_with("cutaway: debug directory: " + r.directory_path() + "\n"));
  CHECK(out.find(" aot: wrote graph.cut: ") != std::string::npos);
  r.set_directory("", FileChoice());
  CHECK(r.directory_path().empty());
}

TEST_CASE("settings are applied: stream, notes and help") {
  auto dir = base::TemporaryDirectory::make("recorder");
  const std::string path = (dir->path() / "e.jsonl").string();
  std::string out;
  Recorder r({.write_line = [&](std::string_view line) { out += line; }, .stamp = &RunStamp::now});
  REQUIRE(r.apply(*settings_of({{"CUTAWAY_EVENTS", path}, {"TORCH_LOGS", "onnx"}, {"CUTAWAY_LOGS", "help,session"}})).ok());
  CHECK(out.find("cutaway: topics of CUTAWAY_LOGS") == 0);
  CHECK(out.find("session: TORCH_LOGS: \"onnx\" has no topic here and is left to torch\n") != std::string::npos);
  CHECK(read_events(path)->size() == 1);
  CHECK_FALSE(Recorder({}).apply(*settings_of({{"CUTAWAY_EVENTS", "/nowhere/e"}})).ok());
}

TEST_CASE("a recorder may be changed while threads write to it") {
  std::atomic<bool> stop{false};
  std::atomic<int> lines{0};
  Recorder r({.write_line = [&](std::string_view) { ++lines; }, .stamp = &RunStamp::now});
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        Phase p(&r, "capture", "frame");
        say(&r, "capture", Level::info, "x");
      }
    });
  for (int i = 0; i < 300; ++i) {
    auto memory = std::make_shared<MemorySink>();
    r.attach(memory);
    r.set_logs(*parse_logs(i % 2 ? "capture" : "", "test"));
    r.detach(memory.get());
  }
  r.set_logs(*parse_logs("capture", "test"));
  while (lines == 0) std::this_thread::yield();
  stop = true;
  for (auto& t : threads) t.join();
}

TEST_CASE("the process has no sink until somebody sets one") {
  CHECK(process_sink() == nullptr);
  MemorySink memory;
  set_process_sink(&memory);
  CHECK(process_sink() == &memory);
  set_process_sink(nullptr);
}

}  // namespace recorder_test
