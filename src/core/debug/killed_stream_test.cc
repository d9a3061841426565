// A process killed in the middle leaves a stream that reads, whose last unfinished phase is the one it was in.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/debug/events.h"
#include "core/debug/log.h"

namespace killed_stream_test {

using namespace cutaway;
using namespace cutaway::debug;

namespace {
// Runs `work` in a child; it is killed when it has written a byte to the pipe and `delay_us` have passed.
template <class Work>
void run_and_kill(Work work, useconds_t delay_us) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    work(ready[1]);
    _exit(3);
  }
  char byte;
  CHECK(read(ready[0], &byte, 1) == 1);
  usleep(delay_us);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
}
}  // namespace

TEST_CASE("a killed process leaves the phase it was in as the last unfinished one") {
  auto dir = base::TemporaryDirectory::make("killed");
  const std::string path = (dir->path() / "e.jsonl").string();
  run_and_kill([&](int ready) {
    auto file = open_event_file(path);
    Sink* sink = file->get();
    { StepPhase done(sink, Step::capture, "toy"); }
    StepPhase backend(sink, Step::backend, "toy");
    StepPhase native(sink, Step::native, "toy");
    { Phase fused(sink, "native", "fuse"); }
    Phase lowering(sink, "native", "lower aten._foobar");
    if (write(ready, "x", 1) != 1) _exit(4);
    pause();
  }, 0);
  auto events = read_events(path);
  REQUIRE(events.ok());
  CHECK(last_unfinished_phase(*events) == "lower aten._foobar");
  CHECK(failing_phase(*events) == "lower aten._foobar");
  CHECK(events->size() == 7);
}

TEST_CASE("killed at any moment, the stream reads") {
  auto dir = base::TemporaryDirectory::make("killed");
  const std::string text(3000, 'x');
  for (int round = 0; round < 40; ++round) {
    const std::string path = (dir->path() / (std::to_string(round) + ".jsonl")).string();
    run_and_kill([&](int ready) {
      auto file = open_event_file(path);
      for (int i = 0;; ++i) {
        Phase outer(file->get(), "native", "outer");
        Phase inner(file->get(), "native", "inner", {{"text", std::string_view(text).substr(0, static_cast<size_t>(i * 37) % text.size())}});
        if (i == 0 && write(ready, "x", 1) != 1) _exit(4);
      }
    }, static_cast<useconds_t>(round * 97 % 1500));
    auto events = read_events(path);
    REQUIRE_MESSAGE(events.ok(), (events.ok() ? "" : events.error().text()));
    // What is unfinished must be what the order of the events says.
    const StoredEvent& last = events->back();
    const std::string expected = last.kind == "begin" ? last.name : last.name == "inner" ? "outer" : "";
    CHECK(last_unfinished_phase(*events) == expected);
  }
}

TEST_CASE("a forked child writes into the same stream, and its phases are its own") {
  auto dir = base::TemporaryDirectory::make("forked");
  const std::string path = (dir->path() / "e.jsonl").string();
  auto file = open_event_file(path);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    new Phase(file->get(), "worker", "candidate");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  { Phase p(file->get(), "minify", "pass"); }
  auto events = read_events(path);
  REQUIRE(events.ok());
  REQUIRE(events->size() == 3);
  CHECK((*events)[0].pid == child);
  CHECK((*events)[0].phase == (*events)[1].phase);   // same number, other process
  CHECK(last_unfinished_phase(*events) == "candidate");
}

TEST_CASE("a write that fails ends the stream, is told once, and what was written reads") {
  auto dir = base::TemporaryDirectory::make("full");
  const std::string path = (dir->path() / "e.jsonl").string();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int told = 0;
    EventFileOptions options;
    options.on_error = [&](const base::Error& e) { told += e.because == "File too large" ? 1 : 100; };
    auto file = open_event_file(path, std::move(options));
    for (int i = 0; i < 100; ++i) say(file->get(), "aot", Level::info, "a line of some length");
    _exit(file->get()->wants("aot", Level::error) ? 50 : told);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(std::filesystem::file_size(path) == 1000);
  auto events = read_events(path);
  REQUIRE(events.ok());
  CHECK(events->size() > 3);
}

}  // namespace killed_stream_test
