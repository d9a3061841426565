#include <cstdint>

#include "core/debug/timings.h"

#include <doctest/doctest.h>

#include "core/debug/log.h"

namespace timings_test {

using namespace cutaway::debug;

namespace {
void phase(Sink& sink, uint64_t number, uint64_t outer, std::string_view topic, std::string_view name, uint64_t from, uint64_t to, std::string_view function = "") {
  const Field f{"function", function};
  sink.write({"begin", topic, name, Level::info, from, number, outer, 1, function.empty() ? std::span<const Field>() : std::span<const Field>(&f, 1)});
  if (to > 0) sink.write({"end", topic, name, Level::info, to, number, outer, 1, {}});
}
}  // namespace

TEST_CASE("times are kept by phase and function, one value a compilation") {
  Timings t;
  phase(t, 1, 0, "capture", "capture", 0, 0, "toy");
  phase(t, 2, 1, "native", "fuse", 1000, 3000);   // inherits the function
  t.write({"end", "capture", "capture", Level::info, 500000, 1, 0, 1, {}});
  phase(t, 3, 0, "capture", "capture", 600000, 700000, "toy");
  phase(t, 4, 0, "aot", "split", 0, 1500000);
  const auto rows = t.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].phase == "native.fuse");
  CHECK(rows[0].function == "toy");
  CHECK(rows[0].seconds == std::vector<double>{0.002});
  CHECK(rows[1].phase == "capture");
  CHECK(rows[1].seconds == std::vector<double>{0.5, 0.1});
  CHECK(rows[1].sum() == doctest::Approx(0.6));
  CHECK(t.text() ==
        "phase        function  times   total s  each s\n"
        "native.fuse  toy           1    0.0020  0.0020\n"
        "capture      toy           2    0.6000  0.5000, 0.1000\n"
        "aot.split    -             1    1.5000  1.5000\n");
  t.reset();
  CHECK(t.rows().empty());
  CHECK(t.text() == "nothing was compiled\n");
}

TEST_CASE("only phases of compiling are counted, and only whole ones") {
  Timings t;
  CHECK_FALSE(t.wants("capture", Level::error));
  CHECK(t.wants_phase("capture", Level::info));
  CHECK(t.wants_phase("fusion", Level::info));
  CHECK_FALSE(t.wants_phase("capture", Level::debug));
  CHECK_FALSE(t.wants_phase("exec", Level::info));
  CHECK_FALSE(t.wants_phase("somebody's own", Level::info));
  phase(t, 1, 0, "exec", "run", 0, 10);
  t.write({"end", "capture", "began earlier", Level::info, 10, 9, 0, 1, {}});
  CHECK(t.rows().empty());
  { StepPhase step(&t, Step::native, "f"); }
  REQUIRE(t.rows().size() == 1);
  CHECK(t.rows()[0].phase == "native");
}

TEST_CASE("a reset in the middle of a phase keeps that phase") {
  Timings t;
  phase(t, 1, 0, "capture", "capture", 0, 0, "toy");
  t.reset();
  t.write({"end", "capture", "capture", Level::info, 1000000, 1, 0, 1, {}});
  CHECK(t.rows().size() == 1);
}

TEST_CASE("a long list of times is shortened in the text, not in the data") {
  Timings t;
  for (uint64_t i = 1; i <= 20; ++i) phase(t, i, 0, "aot", "aot", 0, 1000000, "f");
  CHECK(t.rows()[0].seconds.size() == 20);
  CHECK(t.text().ends_with("1.0000, 1.0000, …\n"));
}

}  // namespace timings_test
