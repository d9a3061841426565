#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstdio>
#include <map>
#include <vector>

#include "core/base/json.h"
#include "diagnosis/worker/fork_server.h"
#include "diagnosis/worker/message.h"

namespace worker_test {

using namespace cutaway;

namespace {

// A server in a process of its own; the handler does what the request says.
struct TestServer {
  int fd = -1;
  pid_t pid = -1;
  TestServer() {
    int s[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
    std::fflush(nullptr);
    pid = fork();
    if (pid == 0) {
      ::close(s[0]);
      (void)worker::serve(s[1], [](const std::string& body) -> std::string {
        if (body == "crash") std::raise(SIGSEGV);
        if (body == "abort") std::abort();
        if (body == "hang") for (;;) pause();
        if (body == "spin") for (volatile long i = 0; i >= 0;) {}
        if (body == "exit") _exit(7);
        if (body == "memory") {
          for (;;) { auto* v = new std::vector<char>(64 << 20, 'x'); if (v->back() != 'x') return "?"; }
        }
        if (body == "print") { std::puts("hello from the child"); return "printed"; }
        if (body == "orphan") { std::fflush(nullptr); if (fork() == 0) for (;;) pause(); return "left one behind"; }
        if (body == "big") return std::string(3 << 20, 'b');
        return "echo " + body;
      });
      _exit(0);
    }
    ::close(s[1]);
    fd = s[0];
  }
  ~TestServer() {
    ::close(fd);
    waitpid(pid, nullptr, 0);
  }
  void send(int id, const std::string& body, int timeout_ms = 5000, uint64_t max_bytes = 0) {
    REQUIRE(worker::send_message(fd, base::Json(base::Json::Object{{"id", id}, {"timeout_ms", timeout_ms}, {"max_bytes", max_bytes}, {"body", body}}).text()).ok());
  }
  base::Json receive() {
    auto text = worker::receive_message(fd);
    REQUIRE(text.ok());
    REQUIRE(text->has_value());
    return base::Json::parse_or_null(**text);
  }
  base::Json ask(const std::string& body, int timeout_ms = 5000, uint64_t max_bytes = 0) {
    send(1, body, timeout_ms, max_bytes);
    return receive();
  }
};

}  // namespace

TEST_CASE("a fork server tells endings apart") {
  TestServer server;
  CHECK(server.ask("one").text_or("body") == "echo one");
  CHECK(server.ask("crash").text_or("signal") == "SIGSEGV");
  CHECK(server.ask("crash").text_or("ending") == "crash");
  CHECK(server.ask("abort").text_or("signal") == "SIGABRT");
  CHECK(server.ask("hang", 200).text_or("ending") == "hang");
  CHECK(server.ask("spin", 200).text_or("ending") == "hang");
  CHECK(server.ask("memory", 20000, 256 << 20).text_or("ending") == "memory");
  auto lost = server.ask("exit");
  CHECK(lost.text_or("ending") == "lost");
  CHECK(lost.integer_or("exit_code") == 7);
  CHECK(server.ask("print").text_or("output").find("hello from the child") != std::string::npos);
  CHECK(server.ask("orphan").text_or("body") == "left one behind");
  CHECK(server.ask("big").text_or("body").size() == 3 << 20);
  CHECK(server.ask("still here").text_or("body") == "echo still here");
}

TEST_CASE("a fork server runs several children at once") {
  TestServer server;
  server.send(1, "hang", 600);
  server.send(2, "two");
  server.send(3, "crash");
  std::map<int, std::string> endings;
  for (int i = 0; i < 3; ++i) {
    auto r = server.receive();
    endings[static_cast<int>(r.integer_or("id"))] = r.text_or("ending");
    if (i < 2) CHECK(r.integer_or("id") != 1);   // the hanging one must not hold the others up
  }
  CHECK(endings[1] == "hang");
  CHECK(endings[2] == "answered");
  CHECK(endings[3] == "crash");
}

}  // namespace worker_test
