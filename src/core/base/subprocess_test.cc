#include "core/base/subprocess.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace subprocess_test {

using namespace cutaway::base;
using namespace std::chrono_literals;

namespace {
Output shell(std::string script, std::string_view input = {}, const RunLimits& limits = {}) {
  auto output = run_command({.argv = {"sh", "-c", std::move(script)}, .environment = {{"CUTAWAY_TEST", "a b"}}, .removed_environment = {"HOME"}}, input, limits);
  REQUIRE_MESSAGE(output.ok(), output.error().text());
  return *std::move(output);
}
bool is_alive(pid_t pid) {
  for (int i = 0; i < 200; ++i) {   // an orphan is reaped by somebody else, in its own time
    if (kill(pid, 0) != 0) return false;
    const auto status = read_file("/proc/" + std::to_string(pid) + "/stat");
    if (!status.ok() || status->find(") Z ") != std::string::npos) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}
}  // namespace

TEST_CASE("subprocess: input, output, environment, directory, status") {
  CHECK(shell("cat; echo oops >&2; exit 3", "hello").out == "hello");
  CHECK(shell("cat; echo oops >&2; exit 3", "hello").err == "oops\n");
  CHECK(shell("exit 3").exit.text() == "exit status 3");
  CHECK(shell("true").exit.ok());
  CHECK(shell("cat").out == "");
  CHECK(shell("echo $CUTAWAY_TEST-$HOME").out == "a b-\n");
  CHECK(run_command({.argv = {"pwd"}, .directory = "/"})->out == "/\n");
  CHECK(run_command({.argv = {"printf", "%s", "no shell: $HOME *"}})->out == "no shell: $HOME *");
  const std::string large(3'000'000, 'x');
  CHECK(shell("cat", large).out == large);   // more than a pipe holds, both ways
}

TEST_CASE("subprocess: exit status, signal and time-out are told apart") {
  const Output crashed = shell("kill -SEGV $$");
  CHECK(crashed.exit.kind == Exit::Kind::signaled);
  CHECK(crashed.exit.text() == "SIGSEGV");
  const Output slow = shell("echo first; sleep 60", {}, {.time = 100ms});
  CHECK(slow.exit.kind == Exit::Kind::timed_out);
  CHECK(slow.exit.text(100ms) == "no answer in 0.1 s");
  CHECK(slow.out == "first\n");
  CHECK_FALSE(slow.exit.ok());
  CHECK(shell("exit 139").exit.text() == "exit status 139");
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(0) == "signal 0");
}

TEST_CASE("subprocess: the whole group goes") {
  const Output late = shell("sleep 60 & echo $!; wait", {}, {.time = 200ms});
  CHECK(late.exit.kind == Exit::Kind::timed_out);
  CHECK_FALSE(is_alive(std::stoi(late.out)));
  // Left behind with our pipes open by a command that ended well: neither waited for nor left running.
  const Output left = shell("sleep 60 & echo $!");
  CHECK(left.exit.ok());
  CHECK(left.elapsed < 30s);
  CHECK_FALSE(is_alive(std::stoi(left.out)));
}

TEST_CASE("subprocess: endless output is kept small, its ends intact") {
  const Output output = shell("echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo end", {}, {.output_bytes = 1000});
  CHECK(output.exit.ok());
  CHECK(output.out.size() == 1000);
  CHECK(output.out.starts_with("begin\nxxx"));
  CHECK(output.out.ends_with("xxxend\n"));
  CHECK(output.out_dropped == 5000000 + 6 + 4 - 1000);
  CHECK(output.err_dropped == 0);
  CHECK(shell("yes", {}, {.time = 100ms, .output_bytes = 100}).exit.kind == Exit::Kind::timed_out);
}

TEST_CASE("subprocess: what cannot be started is said") {
  CHECK(run_command({.argv = {"cutaway-no-such-program"}}).error().text() ==
        "cutaway-no-such-program: cannot be started\n   because: No such file or directory");
  CHECK(run_command({.argv = {"/etc/passwd"}}).error().because == "Permission denied");
  CHECK_FALSE(run_command({.argv = {}}).ok());
  CHECK_FALSE(run_command({.argv = {"echo", std::string("a\0b", 3)}}).ok());
  CHECK_FALSE(run_command({.argv = {"true"}, .directory = "/no/such/directory"}).ok());
}

TEST_CASE("subprocess: a started process talks over a socket and ends with its handle") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  FileDescriptor mine(ends[0]);
  pid_t pid = -1;
  {
    auto process = start_command({.argv = {"sh", "-c", "read line <&7; echo \"got $line\" >&7; exec sleep 60"}}, {{ends[1], 7}});
    close(ends[1]);
    REQUIRE_MESSAGE(process.ok(), process.error().text());
    pid = process->pid();
    REQUIRE(write(mine.get(), "word\n", 5) == 5);
    char buffer[64];
    const ssize_t n = read(mine.get(), buffer, sizeof buffer);
    CHECK(std::string(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0))) == "got word\n");
    CHECK_FALSE(process->wait(10ms)->has_value());
  }
  CHECK_FALSE(is_alive(pid));
  auto quick = start_command({.argv = {"sh", "-c", "exit 4"}});
  REQUIRE(quick.ok());
  CHECK((*quick->wait())->code == 4);
  CHECK((*quick->wait())->code == 4);   // again: the same answer
}

}  // namespace subprocess_test
