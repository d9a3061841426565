// What recording costs: nothing is allocated when nobody listens (tested), and the numbers of docs/notes/event_cost.md
// (`cutaway_core_tests -tc="cost of events*" --no-skip` prints them; nothing asserts a time).
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

#include "core/base/files.h"
#include "core/debug/events.h"
#include "core/debug/recorder.h"

using namespace cutaway;
using namespace cutaway::debug;

#if defined(__SANITIZE_ADDRESS__)
#define CUTAWAY_COUNTS_ALLOCATIONS 0
#else
#define CUTAWAY_COUNTS_ALLOCATIONS 1
namespace {
thread_local long allocations = 0;
}
void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace {
// What a compiler pass would say about one node.
void tell_everything(Sink* sink, const std::string& long_text) {
  Phase phase(sink, "native", "a phase whose name is longer than any small string", {{"graph", long_text}, {"nodes", 3}});
  decide(sink, "fusion", "kept apart", long_text, {{"first", long_text}, {"size", 12}});
  count(sink, "cache", "hit");
  say(sink, "native", Level::debug, long_text);
  artifact(sink, "native", "output_code.cpp", long_text);
  keep_artifact(sink, "native", long_text, "output_code.cpp", [&] { return long_text + long_text; });
  phase.note("kernels", long_text);
}

template <class Work>
double nanoseconds(int times, Work work) {
  const auto cpu_ns = [] {   // of this thread: other programs on the machine do not count
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  };
  const double start = cpu_ns();
  for (int i = 0; i < times; ++i) work();
  return (cpu_ns() - start) / times;
}
}  // namespace

TEST_CASE("a null sink allocates nothing") {
  static_assert(sizeof(Phase) <= 2 * sizeof(void*));
  const std::string long_text(200, 'x');
#if CUTAWAY_COUNTS_ALLOCATIONS
  const long before = allocations;
  tell_everything(nullptr, long_text);
  CHECK(allocations == before);
  // So does a recorder that nobody asked anything of, but for the phases that compile_times() counts.
  Recorder quiet({.write_line = [](std::string_view) {}, .stamp = &RunStamp::now});
  const long quiet_before = allocations;
  decide(&quiet, "fusion", "kept apart", long_text, {{"first", long_text}});
  say(&quiet, "native", Level::debug, long_text);
  keep_artifact(&quiet, "native", long_text, "output_code.cpp", [&] { return long_text + long_text; });
  { Phase run(&quiet, "exec", "run", {{"graph", long_text}}); }
  CHECK(allocations == quiet_before);
#else
  tell_everything(nullptr, long_text);
#endif
}

TEST_CASE("cost of events, in nanoseconds" * doctest::skip()) {
  const std::string text(40, 'x');
  auto dir = base::TemporaryDirectory::make("cost");
  auto file = open_event_file((dir->path() / "e.jsonl").string());
  Recorder quiet({.write_line = [](std::string_view) {}, .stamp = &RunStamp::now});
  Sink* volatile nothing = nullptr;   // the compiler must not see that it is null
  struct Row { const char* name; Sink* sink; int times; };
  for (const Row& row : {Row{"null sink", nullptr, 10000000}, Row{"Python's default (warnings, times)", &quiet, 1000000}, Row{"a file of events", file->get(), 100000}}) {
    Sink* sink = row.sink ? row.sink : nothing;
    const double phase = nanoseconds(row.times, [&] { Phase p(row.sink ? sink : nothing, "native", "fuse", {{"graph", text}}); });
    const double exec_phase = nanoseconds(row.times, [&] { Phase p(row.sink ? sink : nothing, "exec", "run", {{"graph", text}}); });
    const double decision = nanoseconds(row.times, [&] { decide(row.sink ? sink : nothing, "fusion", "kept apart", text, {{"size", 3}}); });
    const double counter = nanoseconds(row.times, [&] { count(row.sink ? sink : nothing, "cache", "hit"); });
    std::printf("%-36s phase %8.1f   phase of exec %8.1f   decision %8.1f   counter %8.1f\n", row.name, phase, exec_phase, decision, counter);
  }
}
