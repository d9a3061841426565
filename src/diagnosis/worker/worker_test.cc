#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

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
    REQUIRE(worker::send_message(fd, nlohmann::json{{"id", id}, {"timeout_ms", timeout_ms}, {"max_bytes", max_bytes}, {"body", body}}.dump()).ok());
  }
  nlohmann::json receive() {
    auto text = worker::receive_message(fd);
    REQUIRE(text.ok());
    REQUIRE(text->has_value());
    return nlohmann::json::parse(**text);
  }
  nlohmann::json ask(const std::string& body, int timeout_ms = 5000, uint64_t max_bytes = 0) {
    send(1, body, timeout_ms, max_bytes);
    return receive();
  }
};

}  // namespace

TEST_CASE("a fork server tells endings apart") {
  TestServer server;
  CHECK(server.ask("one")["body"] == "echo one");
  CHECK(server.ask("crash")["signal"] == "SIGSEGV");
  CHECK(server.ask("crash")["ending"] == "crash");
  CHECK(server.ask("abort")["signal"] == "SIGABRT");
  CHECK(server.ask("hang", 200)["ending"] == "hang");
  CHECK(server.ask("spin", 200)["ending"] == "hang");
  CHECK(server.ask("memory", 20000, 256 << 20)["ending"] == "memory");
  auto lost = server.ask("exit");
  CHECK(lost["ending"] == "lost");
  CHECK(lost["exit_code"] == 7);
  CHECK(server.ask("print")["output"].get<std::string>().find("hello from the child") != std::string::npos);
  CHECK(server.ask("orphan")["body"] == "left one behind");
  CHECK(server.ask("big")["body"].get<std::string>().size() == 3 << 20);
  CHECK(server.ask("still here")["body"] == "echo still here");
}

TEST_CASE("a fork server runs several children at once") {
  TestServer server;
  server.send(1, "hang", 600);
  server.send(2, "two");
  server.send(3, "crash");
  std::map<int, std::string> endings;
  for (int i = 0; i < 3; ++i) {
    auto r = server.receive();
    endings[r["id"]] = r["ending"];
    if (i < 2) CHECK(r["id"] != 1);   // the hanging one must not hold the others up
  }
  CHECK(endings[1] == "hang");
  CHECK(endings[2] == "answered");
  CHECK(endings[3] == "crash");
}

}  // namespace worker_test
