#include "core/debug/log_filter.h"

#include <doctest/doctest.h>

#include <set>

#include "core/base/files.h"
#include "core/debug/topics.h"

namespace log_filter_test {

using namespace cutaway;
using namespace cutaway::debug;

namespace {
LogFilter ours(std::string_view words) { return *parse_logs(words, "CUTAWAY_LOGS"); }
std::string error_of(std::string_view words) {
  auto r = parse_logs(words, "CUTAWAY_LOGS");
  return r.ok() ? "no error" : r.error().text();
}
}  // namespace

TEST_CASE("the table of topics is sound") {
  std::set<std::string_view> names, torch_words;
  for (const Topic& t : topics()) {
    CHECK(names.insert(t.name).second);
    REQUIRE(topic_index(t.component));
    CHECK(topics()[*topic_index(t.component)].is_component());
    for (std::string_view w : t.torch) {
      CHECK(torch_words.insert(w).second);
      // A word that is both ours and torch's means the same, whoever said it.
      if (topic_index(w)) CHECK(topic_index(w) == topic_index(t.name));
    }
  }
  CHECK(component_of("fusion") == "native");
  CHECK(component_of("somebody's own") == "somebody's own");
  CHECK(topics_text().find("  breaks          graph breaks, each with its reason (torch: graph_breaks)\n") != std::string::npos);
}

TEST_CASE("without words warnings are shown") {
  const LogFilter f;
  CHECK(f.shows("breaks", Level::warning));
  CHECK(f.shows("somebody's own", Level::warning));
  CHECK_FALSE(f.shows("capture", Level::info));
  CHECK(ours("") == f);
  CHECK(ours(" , ,") == f);
}

TEST_CASE("words set levels") {
  CHECK(ours("capture").level_of("capture") == Level::info);
  CHECK(ours("capture").level_of("bytecode") == Level::info);
  CHECK(ours("capture").level_of("native") == Level::warning);
  CHECK(ours("+capture").level_of("instructions") == Level::debug);
  CHECK(ours("-aot").level_of("joint_graph") == Level::error);
  CHECK(ours("guards").level_of("guards") == Level::debug);
  CHECK(ours("guards").level_of("capture") == Level::warning);
  CHECK(ours("native=debug").level_of("output_code") == Level::debug);
  CHECK(ours("all").level_of("store") == Level::info);
  CHECK(ours("+all").level_of("somebody's own") == Level::debug);
  CHECK(ours("debug").level_of("store") == Level::debug);
  CHECK(ours("error").loudest() == Level::error);
  CHECK(ours("breaks, +capture").level_of("breaks") == Level::debug);
}

TEST_CASE("the specific word wins wherever it stands, the later one among equals") {
  for (const char* words : {"+capture,-guards,all", "all,-guards,+capture", "-guards,all,+capture"}) {
    const LogFilter f = ours(words);
    CHECK(f.level_of("guards") == Level::error);
    CHECK(f.level_of("bytecode") == Level::debug);
    CHECK(f.level_of("store") == Level::info);
  }
  CHECK(ours("+aot,-aot").level_of("aot") == Level::error);
  CHECK(ours("-aot,+aot").level_of("aot") == Level::debug);
}

TEST_CASE("torch's words mean ours") {
  std::vector<std::string> notes;
  const LogFilter f = parse_torch_logs("+dynamo,graph_breaks,-aot,recompiles,guards,bytecode,graph_code,output_code,torch._inductor.scheduler", notes);
  CHECK(notes.empty());
  CHECK(f == ours("+capture,breaks,-aot,recompiles,guards,bytecode,graph,output_code,native"));
  CHECK(ours("graph_breaks,+dynamo") == ours("breaks,+capture"));
  CHECK(parse_torch_logs("all", notes) == ours("all"));
}

TEST_CASE("words of torch without a counterpart are noted, not refused") {
  std::vector<std::string> notes;
  const LogFilter f = parse_torch_logs("onnx,+mypackage.thing,dynamo,torch._dynamofoo", notes);
  CHECK(f == ours("capture"));
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == "TORCH_LOGS: \"onnx\" has no topic here and is left to torch");
  CHECK(notes[1] == "TORCH_LOGS: \"+mypackage.thing\" has no topic here and is left to torch");
}

TEST_CASE("our unknown words are errors with the nearest name") {
  CHECK(error_of("+captur") == "CUTAWAY_LOGS: unknown topic \"captur\"; did you mean \"capture\"?\n   try: CUTAWAY_LOGS=help lists the topics");
  CHECK(error_of("zzzzzzzz") == "CUTAWAY_LOGS: unknown topic \"zzzzzzzz\"\n   try: CUTAWAY_LOGS=help lists the topics");
  CHECK(error_of("capture=deubg") == "CUTAWAY_LOGS: unknown level \"deubg\"; did you mean \"debug\"?\n   try: one of error, warning, info, debug");
  CHECK(error_of("+capture=info") == "CUTAWAY_LOGS: \"+capture=info\" says two levels\n   try: capture=info alone");
}

TEST_CASE("a filter's own text parses to the same filter") {
  for (const char* words : {"", "all", "+capture,-guards", "debug", "-all,breaks", "native=info,fusion=error"}) CHECK(ours(ours(words).text()) == ours(words));
  CHECK(ours("+capture,-guards").text() == "all=warning,capture=debug,guards=error");
}

TEST_CASE("docs/env_vars.md names every topic and every word of torch's that means one") {
  const std::string page = *base::read_file(CUTAWAY_SOURCE_DIR "/docs/env_vars.md");
  for (const Topic& t : topics()) {
    CHECK_MESSAGE(page.find("`" + std::string(t.name) + "`") != std::string::npos, std::string(t.name));
    for (std::string_view w : t.torch) CHECK_MESSAGE(page.find("`" + std::string(w) + "`") != std::string::npos, std::string(w));
  }
}

}  // namespace log_filter_test
