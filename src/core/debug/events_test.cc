#include "core/debug/events.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <thread>

#include "core/base/files.h"
#include "core/debug/event_json.h"
#include "core/debug/memory_sink.h"

namespace events_test {

using namespace cutaway;
using namespace cutaway::debug;

TEST_CASE("phases nest, and events tell the innermost phase around them") {
  MemorySink sink;
  {
    Phase outer(&sink, "capture", "frame", {{"function", "f"}});
    say(&sink, "capture", Level::info, "in outer");
    {
      Phase inner(&sink, "native", "fuse");
      decide(&sink, "fusion", "kept apart", "different sizes", {{"nodes", size_t{2}}, {"ratio", 0.5}, {"first", true}});
      inner.note("kernels", 3);
      inner.note("kernels", 4);
    }
    count(&sink, "cache", "hit");
  }
  const auto e = sink.events();
  REQUIRE(e.size() == 7);
  CHECK(e[0].kind == "begin");
  CHECK(e[0].outer == 0);
  CHECK(e[1].phase == e[0].phase);
  CHECK(e[2].outer == e[0].phase);
  CHECK(e[3].phase == e[2].phase);
  CHECK(*e[3].find("reason") == FieldValue(std::string("different sizes")));
  CHECK(*e[3].find("nodes") == FieldValue(int64_t{2}));
  CHECK(*e[3].find("ratio") == FieldValue(0.5));
  CHECK(*e[3].find("first") == FieldValue(true));
  CHECK(e[4].kind == "end");
  CHECK(*e[4].find("kernels") == FieldValue(int64_t{4}));
  CHECK(e[4].find("duration_us") != nullptr);
  CHECK(e[4].find("failed") == nullptr);
  CHECK(e[5].phase == e[0].phase);
  CHECK(*e[5].find("delta") == FieldValue(int64_t{1}));
  CHECK(e[6].phase == e[0].phase);
  CHECK(last_unfinished_phase(e).empty());
}

TEST_CASE("a phase that an exception or an error ends says so") {
  MemorySink sink;
  try {
    Phase outer(&sink, "capture", "outer");
    Phase inner(&sink, "native", "inner");
    throw std::runtime_error("x");
  } catch (const std::exception&) {
  }
  {
    Phase quiet(&sink, "aot", "fine");
  }
  auto e = sink.events();
  CHECK(*e[2].find("failed") == FieldValue(true));
  CHECK(*e[3].find("failed") == FieldValue(true));
  CHECK(e[5].find("failed") == nullptr);
  CHECK(failing_phase(e) == "inner");
  {
    Phase result(&sink, "aot", "split");
    result.fail("no such operator");
  }
  e = sink.events();
  CHECK(*e.back().find("error") == FieldValue(std::string("no such operator")));
  CHECK(failing_phase(e) == "split");
}

TEST_CASE("a phase inside a catch block is not failed by the exception that was caught") {
  MemorySink sink;
  try {
    throw std::runtime_error("x");
  } catch (const std::exception&) {
    Phase p(&sink, "aot", "retry");
  }
  CHECK(sink.events().back().find("failed") == nullptr);
}

TEST_CASE("phases of different sinks and threads do not nest into each other") {
  MemorySink a, b;
  Phase pa(&a, "capture", "a");
  Phase pb(&b, "capture", "b");
  say(&a, "capture", Level::info, "to a");
  CHECK(a.events().back().phase == pa.number());
  std::thread([&] {
    Phase other(&a, "aot", "other thread");
    CHECK(a.events().back().outer == 0);
    CHECK(a.events().back().thread != a.events().front().thread);
  }).join();
}

TEST_CASE("phases may end out of order") {
  MemorySink sink;
  auto first = std::make_unique<Phase>(&sink, "capture", "first");
  auto second = std::make_unique<Phase>(&sink, "capture", "second");
  const uint64_t number = second->number();
  first.reset();
  say(&sink, "capture", Level::info, "x");
  CHECK(sink.events().back().phase == number);
  second.reset();
  say(&sink, "capture", Level::info, "y");
  CHECK(sink.events().back().phase == 0);
}

TEST_CASE("what no sink wants is not written") {
  MemorySink sink(Level::warning);
  Phase p(&sink, "capture", "frame");
  CHECK(p.number() == 0);
  say(&sink, "capture", Level::info, "x");
  count(&sink, "capture", "n");
  decide(&sink, "breaks", "print", "has an effect", {}, Level::warning);
  REQUIRE(sink.events().size() == 1);
  CHECK(sink.events()[0].name == "print");
}

TEST_CASE("tee gives to all, skips nulls and wants what any wants") {
  MemorySink quiet(Level::error), loud;
  const auto both = tee({&quiet, nullptr, &loud});
  say(both.get(), "aot", Level::debug, "x");
  CHECK(quiet.events().empty());
  CHECK(loud.events().size() == 1);
  CHECK_FALSE(both->keeps_file("output_code.cpp"));
  CHECK_FALSE(tee({})->wants("aot", Level::error));
}

TEST_CASE("a stream reads back as it was written") {
  auto dir = base::TemporaryDirectory::make("events");
  const std::string path = (dir->path() / "e.jsonl").string();
  const std::string nasty = std::string("quote\" back\\ nl\n tab\t nul") + '\0' + " bell\x07 del\x7f snow\xe2\x98\x83 " + "line\xe2\x80\xa8";
  {
    auto file = open_event_file(path);
    REQUIRE(file.ok());
    Sink* sink = file->get();
    Phase p(sink, "capture", nasty, {{"big", std::numeric_limits<int64_t>::max()}, {"small", std::numeric_limits<int64_t>::min()},
                                     {"one", 1.0}, {"minus zero", -0.0}, {"tiny", 5e-324}, {"nan", std::nan("")},
                                     {"inf", std::numeric_limits<double>::infinity()}, {"-inf", -std::numeric_limits<double>::infinity()}, {"text", nasty}, {"no", false}});
    say(sink, "aot", Level::error, "");
    artifact(sink, "native", "output_code.cpp", "/x/y");
  }
  auto events = read_events(path);
  REQUIRE(events.ok());
  REQUIRE(events->size() == 4);
  const StoredEvent& b = (*events)[0];
  CHECK(b.name == nasty);
  CHECK(*b.find("big") == FieldValue(std::numeric_limits<int64_t>::max()));
  CHECK(*b.find("small") == FieldValue(std::numeric_limits<int64_t>::min()));
  CHECK(*b.find("one") == FieldValue(1.0));
  CHECK(std::signbit(std::get<double>(*b.find("minus zero"))));
  CHECK(*b.find("tiny") == FieldValue(5e-324));
  CHECK(std::isnan(std::get<double>(*b.find("nan"))));
  CHECK(*b.find("inf") == FieldValue(std::numeric_limits<double>::infinity()));
  CHECK(*b.find("-inf") == FieldValue(-std::numeric_limits<double>::infinity()));
  CHECK(*b.find("text") == FieldValue(nasty));
  CHECK(*b.find("no") == FieldValue(false));
  CHECK((*events)[1].level == "error");
  CHECK(*(*events)[2].find("path") == FieldValue(std::string("/x/y")));
  CHECK((*events)[3].outer == 0);
}

TEST_CASE("text that is not UTF-8 becomes valid JSON") {
  std::string out;
  append_json_text(out, "a\xff\xc0\xaf\xed\xa0\x80z\xe2\x98");
  CHECK(out == "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_CASE("several threads write whole lines into one file") {
  auto dir = base::TemporaryDirectory::make("events");
  const std::string path = (dir->path() / "e.jsonl").string();
  {
    auto file = open_event_file(path);
    REQUIRE(file.ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          Phase p(file->get(), "exec", "run", {{"t", t}, {"text", std::string(static_cast<size_t>(i), 'x')}});
        }
      });
    for (auto& t : threads) t.join();
  }
  auto events = read_events(path);
  REQUIRE(events.ok());
  CHECK(events->size() == 4000);
  CHECK(last_unfinished_phase(*events).empty());
}

TEST_CASE("existing files are continued or replaced, as asked") {
  auto dir = base::TemporaryDirectory::make("events");
  const std::string path = (dir->path() / "e.jsonl").string();
  const auto write_one = [&](EventFileOptions options) {
    auto file = open_event_file(path, std::move(options));
    say(file->get(), "aot", Level::info, "x");
    say(file->get(), "aot", Level::debug, "y");
    return read_events(path)->size();
  };
  CHECK(write_one({}) == 2);
  CHECK(write_one({.existing = EventFileOptions::Existing::append, .most = Level::info, .on_error = {}}) == 3);
  CHECK(write_one({.existing = EventFileOptions::Existing::replace, .most = Level::info, .on_error = {}}) == 1);
  auto bad = open_event_file((dir->path() / "no" / "e.jsonl").string());
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().text().find("events cannot be written here\n   because: No such file or directory\n   try: give a path in a folder that exists") != std::string::npos);
}

namespace {
const std::string kStream = "{\"kind\":\"stream\",\"version\":1,\"pid\":7,\"began\":\"2026-01-31T12:00:00Z\"}\n";
std::string line(std::string kind, std::string name, int phase, std::string rest = "") {
  return R"({"time_us":1,"kind":")" + kind + R"(","topic":"aot","name":")" + name + R"(","level":"info","phase":)" + std::to_string(phase) + R"(,"pid":7,"thread":1)" + rest + "}\n";
}
std::string error_of(const std::string& text) {
  auto r = parse_events(text, "e.jsonl");
  return r.ok() ? "no error" : r.error().text();
}
}  // namespace

TEST_CASE("bad lines are errors with their number, a half-written last line is not") {
  const std::string good = line("begin", "a", 1);
  CHECK(parse_events(kStream + good + R"({"time_us":2,"ki)", "e.jsonl")->size() == 1);
  CHECK(parse_events("", "e.jsonl")->empty());
  CHECK(error_of(kStream + "{\"time\n" + good) == "e.jsonl:2: not a line of JSON that holds an event");
  CHECK(error_of(good) == "e.jsonl:1: not a stream of events\n   because: its first line does not say \"kind\":\"stream\" and a version");
  CHECK(error_of("{\"kind\":\"stream\",\"version\":2}\n") == "e.jsonl:1: events of version 2 cannot be read\n   because: this program knows version 1\n   try: read it with the version of cutaway that wrote it");
  CHECK(error_of(kStream + good + line("wink", "a", 1)) == "e.jsonl:3: unknown kind of event \"wink\"");
  CHECK(error_of(kStream + line("begin", "a", 1, ",\"x\":1")) == "e.jsonl:2: not an event\n   because: \"x\" is unknown");
  CHECK(error_of(kStream + line("begin", "a", -1)) == "e.jsonl:2: not an event\n   because: \"phase\" is not a whole number in range");
  CHECK(error_of(kStream + line("begin", "a", 1, ",\"fields\":{\"k\":[1]}")) == "e.jsonl:2: field \"k\" is no bool, number or text");
  CHECK(error_of(kStream + line("begin", "a", 1, ",\"fields\":{\"k\":18446744073709551615}")) == "e.jsonl:2: field \"k\" does not fit into 64 bits with a sign");
  CHECK(error_of(kStream + line("begin", "a", 1, ",\"fields\":3")) == "e.jsonl:2: not an event\n   because: \"fields\" is not an object");
}

TEST_CASE("the last unfinished phase is the innermost one") {
  const auto last = [](const std::string& text) { return last_unfinished_phase(*parse_events(kStream + text, "e")); };
  CHECK(last("") == "");
  CHECK(last(line("begin", "a", 1)) == "a");
  CHECK(last(line("begin", "a", 1) + line("begin", "b", 2)) == "b");
  CHECK(last(line("begin", "a", 1) + line("begin", "b", 2) + line("end", "b", 2)) == "a");
  CHECK(last(line("begin", "a", 1) + line("begin", "b", 2) + line("end", "b", 2) + line("end", "a", 1)) == "");
}

TEST_CASE("a file that is not there is an error that names it") {
  auto r = read_events("/nowhere/e.jsonl");
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().text().find("/nowhere/e.jsonl") != std::string::npos);
}

}  // namespace events_test
