#include "app/flows/observation.h"

#include <doctest/doctest.h>

#include <string>

namespace observation_test {

using namespace cutaway;
using flows::EventReader;
using flows::Observation;

// As python/cutaway/observe.py has them written.
const std::string kStream = R"({"kind":"stream","version":1,"pid":7,"began":"2026-01-31T12:00:00Z"})" "\n";
std::string line(const std::string& kind, const std::string& name, int phase, int time_us, const std::string& fields) {
  return R"({"time_us":)" + std::to_string(time_us) + R"(,"kind":")" + kind + R"(","topic":"observe","name":")" + name + R"(","level":"info","phase":)" + std::to_string(phase) +
         R"(,"pid":7,"thread":1,"fields":{)" + fields + "}}\n";
}
const std::string kCompile = line("begin", "compile", 3, 1'000'000, R"j("graph":"graph_0","backend":"inductor","has_aot":true,"call.file":"train.py","call.line":88,"call.function":"step","call.text":"loss = f(x)")j");

TEST_CASE("observation: what was under way when a script died in the middle of a line") {
  EventReader reader;
  REQUIRE(reader.read(kStream + line("decision", "script", 0, 5, R"("path":"train.py","threads":4)") + kCompile + R"({"time_us":2000)", "events.jsonl").ok());
  CHECK(reader.has_started());
  CHECK(reader.is_in_phase());
  Observation o;
  o.ending = Observation::Ending::died;
  reader.describe(o);
  CHECK(o.phase == "compile");
  CHECK(o.backend == "inductor");
  CHECK(o.has_aot_stage);
  CHECK(o.call.place() == "train.py:88");
  CHECK(o.threads == 4);
}

TEST_CASE("observation: a line may come in pieces, and events of others are passed over") {
  EventReader reader;
  const std::string all = kStream + kCompile + line("end", "compile", 3, 3'500'000, R"("duration_us":2500000)") + R"({"time_us":9,"kind":"message","topic":"breaks","name":"","level":"info","phase":0,"pid":7,"thread":1})" "\n" +
                          line("decision", "failure", 0, 4'000'000, R"("reason":"","graph":"graph_0","signature.kind":"exception","signature.type":"RuntimeError","message":"no")");
  for (const char c : all) REQUIRE(reader.read(std::string(1, c), "events.jsonl").ok());
  CHECK(reader.has_failure());
  CHECK(!reader.is_in_phase());
  Observation o;
  reader.describe(o);
  CHECK(o.ending == Observation::Ending::failed);
  CHECK(o.signature.kind == "exception");
  CHECK(o.signature.type == "RuntimeError");
  CHECK(o.has_aot_stage);
  CHECK(o.longest_phase_s == 2.5);
}

TEST_CASE("observation: an event of another version of the observer is an error") {
  EventReader reader;
  const base::Status s = reader.read(kStream + line("decision", "explosion", 0, 1, ""), "events.jsonl");
  REQUIRE(!s.ok());
  CHECK(s.error().what == "unknown event \"explosion\"");
}

}  // namespace observation_test
