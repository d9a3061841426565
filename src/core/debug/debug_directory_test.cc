#include "core/debug/debug_directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

namespace debug_directory_test {

using namespace cutaway;
using namespace cutaway::debug;
namespace fs = std::filesystem;

namespace {
struct Scratch {
  base::TemporaryDirectory dir = *base::TemporaryDirectory::make("directory");
  std::vector<std::string> told, errors;

  std::unique_ptr<DebugDirectory> open(Ladder ladder, std::string_view words = "") {
    DirectoryOptions o;
    o.root = dir.path().string();
    o.files = *FileChoice::parse(ladder, words, "test");
    o.stamp = {"2026_01_31_12_00_00_123456", 42};
    o.tell = [this](std::string_view line) { told.emplace_back(line); };
    o.on_error = [this](const base::Error& e) { errors.push_back(e.text()); };
    return std::make_unique<DebugDirectory>(std::move(o));
  }
  fs::path run() const { return dir.path() / "cutaway_debug" / "run_2026_01_31_12_00_00_123456-pid_42"; }
  std::vector<std::string> tree() const {
    std::vector<std::string> out;
    if (fs::exists(run()))
      for (const auto& e : fs::recursive_directory_iterator(run()))
        if (e.is_regular_file()) out.push_back(e.path().lexically_relative(run()).string());
    std::ranges::sort(out);
    return out;
  }
  std::string read(std::string_view file) const { return *base::read_file(run() / file); }
};
using Tree = std::vector<std::string>;
}  // namespace

TEST_CASE("a run's folder has a folder a component and one a graph") {
  Scratch s;
  auto d = s.open(Ladder::code);
  CHECK(s.tree().empty());   // nothing before the first event
  CHECK_FALSE(d->is_created());
  {
    Phase capture(d.get(), "capture", "frame", {{"function", "toy"}});
    keep_artifact(d.get(), "capture", "", "bytecode.txt", [] { return "LOAD_FAST"; });
    Phase aot(d.get(), "aot", "split", {{"graph", "model/forward 0"}});
    decide(d.get(), "joint_graph", "saved", "smallest cut");
    keep_artifact(d.get(), "aot", "model/forward 0", "fx_graph_readable.py", [] { return "def f(): pass\n"; });
    keep_artifact(d.get(), "aot", "backward 0", "fx_graph_readable.py", [] { return "b"; });
    keep_artifact(d.get(), "aot", "model/forward 0", "fx_graph_readable.py", [] { return "again"; });
    keep_artifact(d.get(), "native", "model/forward 0", "output_code.cpp", [] { return "int x;"; });
  }
  CHECK(s.errors.empty());
  CHECK(s.told == Tree{"debug directory: " + s.run().string()});
  CHECK(d->is_created());
  CHECK(s.tree() == Tree{"aot/0000.model_forward_0/debug.log", "aot/0000.model_forward_0/fx_graph_readable.2.py", "aot/0000.model_forward_0/fx_graph_readable.py",
                         "aot/0000.model_forward_0/times.txt", "aot/0001.backward_0/fx_graph_readable.py", "aot/debug.log", "capture/bytecode.txt",
                         "capture/debug.log", "events.jsonl", "native/0000.model_forward_0/output_code.cpp", "native/debug.log", "times.txt"});
  CHECK(s.read("aot/0000.model_forward_0/fx_graph_readable.py") == "def f(): pass\n");
  CHECK(s.read("aot/0000.model_forward_0/fx_graph_readable.2.py") == "again");
  CHECK(s.read("times.txt").find("\naot.split      toy           1 ") != std::string::npos);
  CHECK(s.read("aot/0000.model_forward_0/times.txt").find("aot.split") != std::string::npos);
  const std::string log = s.read("aot/0000.model_forward_0/debug.log");
  CHECK(log.find(" aot: split begins  graph=model/forward 0\n") != std::string::npos);
  CHECK(log.find(" joint_graph: saved: smallest cut\n") != std::string::npos);
  CHECK(log.find(" aot: split done in ") != std::string::npos);
  CHECK(log.find("capture: ") == std::string::npos);

  auto events = read_events((s.run() / "events.jsonl").string());
  REQUIRE(events.ok());
  CHECK(std::ranges::count(*events, std::string("artifact"), &StoredEvent::kind) == 5);
  const auto artifact = std::ranges::find(*events, std::string("output_code.cpp"), &StoredEvent::name);
  REQUIRE(artifact != events->end());
  CHECK(*artifact->find("path") == FieldValue((s.run() / "native/0000.model_forward_0/output_code.cpp").string()));
}

TEST_CASE("the ladder and the switches choose files") {
  const auto has = [](Ladder ladder, std::string_view words, std::string_view file) { return FileChoice::parse(ladder, words, "test")->has(file); };
  CHECK_FALSE(has(Ladder::off, "output_code", "output_code.cpp"));
  CHECK_FALSE(has(Ladder::graphs, "", "output_code.cpp"));
  CHECK(has(Ladder::code, "", "output_code.cpp"));
  CHECK(has(Ladder::summary, "output_code", "output_code.cpp"));
  CHECK_FALSE(has(Ladder::everything, "-fx_graph_runnable", "fx_graph_runnable.py"));
  CHECK_FALSE(has(Ladder::everything, "", "diagram.svg"));
  CHECK(has(Ladder::summary, " +diagram , ", "diagram.svg"));
  CHECK_FALSE(has(Ladder::everything, "", "unheard_of.txt"));
  auto bad = FileChoice::parse(Ladder::code, "output_kode", "CUTAWAY_DEBUG_FILES");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().text().starts_with("CUTAWAY_DEBUG_FILES: the debug directory has no file \"output_kode\"; did you mean \"output_code\"?\n   try: one of events, debug, "));
  for (const char* name : {"fx_graph_readable", "fx_graph_runnable", "fx_graph_transformed", "ir_pre_fusion", "ir_post_fusion", "output_code"}) CHECK(has(Ladder::code, "", name));
}

TEST_CASE("files that are switched off are not built") {
  Scratch s;
  auto d = s.open(Ladder::graphs);
  bool built = false;
  keep_artifact(d.get(), "native", "g", "output_code.cpp", [&] { built = true; return ""; });
  CHECK_FALSE(built);
  CHECK(*d->write_artifact({"native", "g", "output_code.cpp", "x"}) == "");
  CHECK(s.tree().empty());
  auto unknown = d->write_artifact({"native", "g", "fx_graph_readible.py", "x"});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().what == "the debug directory has no file \"fx_graph_readible\"; did you mean \"fx_graph_readable\"?");
}

TEST_CASE("logs, times and events can be switched off") {
  Scratch s;
  auto d = s.open(Ladder::code, "-debug,-times,-events");
  CHECK_FALSE(d->wants("capture", Level::error));
  { Phase p(d.get(), "capture", "frame"); }
  CHECK(s.tree().empty());
  auto only_times = s.open(Ladder::summary, "-debug,-events");
  { Phase p(only_times.get(), "capture", "frame", {{"graph", "g"}}); }
  CHECK(s.tree() == Tree{"capture/0000.g/times.txt", "times.txt"});
}

TEST_CASE("debug events are kept on the top rung alone") {
  Scratch s;
  CHECK_FALSE(s.open(Ladder::code)->wants("capture", Level::debug));
  CHECK(s.open(Ladder::everything)->wants("capture", Level::debug));
}

TEST_CASE("names cannot leave the run's folder") {
  Scratch s;
  auto d = s.open(Ladder::code);
  CHECK(*d->write_artifact({"..", "../../x", "graph./../../y", "t"}) == (s.run() / "_.." / "0000._.._.._x" / "graph._.._.._y").string());
  const std::string longest(5000, 'n');
  CHECK(d->write_artifact({"aot", longest, "graph.cut", "t"}).ok());
}

TEST_CASE("a folder that cannot be made is told of once, and nothing else happens") {
  Scratch s;
  REQUIRE(base::write_file_atomic(s.dir.path() / "cutaway_debug", "a file in the way").ok());
  auto d = s.open(Ladder::code);
  for (int i = 0; i < 3; ++i) say(d.get(), "aot", Level::info, "x");
  keep_artifact(d.get(), "aot", "g", "graph.cut", [] { return "x"; });
  REQUIRE(s.errors.size() == 1);
  CHECK(s.errors[0].find("cutaway_debug") != std::string::npos);
  CHECK(s.told.empty());
}

TEST_CASE("several threads share a directory") {
  Scratch s;
  auto d = s.open(Ladder::code);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Phase p(d.get(), "native", "compile", {{"graph", "g"}});
        keep_artifact(d.get(), "native", "g", "output_code.cpp", [] { return "x"; });
      }
    });
  for (auto& t : threads) t.join();
  CHECK(s.errors.empty());
  CHECK(s.tree().size() == 200 + 5);
  CHECK(read_events((s.run() / "events.jsonl").string())->size() == 600);
}

TEST_CASE("a stamp has the form that the format's page shows") {
  const RunStamp stamp = RunStamp::now();
  REQUIRE(stamp.time.size() == 26);
  for (size_t i = 0; i < stamp.time.size(); ++i) CHECK((stamp.time[i] == '_' || (stamp.time[i] >= '0' && stamp.time[i] <= '9')));
  CHECK(stamp.pid > 0);
}

TEST_CASE("docs/formats/debug_directory.md names every file") {
  const std::string page = *base::read_file(CUTAWAY_SOURCE_DIR "/docs/formats/debug_directory.md");
  for (const DirectoryFile& f : directory_files()) CHECK_MESSAGE((page.find("`" + std::string(f.name) + "`") != std::string::npos || page.find("`" + std::string(f.name) + ".") != std::string::npos), std::string(f.name));
}

}  // namespace debug_directory_test
