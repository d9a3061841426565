#include "core/base/processor.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

namespace processor_test {

using namespace cutaway::base;
using namespace std::chrono_literals;

namespace {

/// Processes of one group that share one processor; they end with this object.
class Group {
 public:
  Group(int spinning, int sleeping) {
    const int processor = sched_getcpu();
    for (int i = 0; i < spinning + sleeping; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        setpgid(0, id_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        sched_setaffinity(0, sizeof one, &one);
        for (;;)
          if (i >= spinning) pause();
      }
      if (id_ == 0) id_ = pid;
      setpgid(pid, id_);
      pids_.push_back(pid);
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    kill(-id_, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }
  pid_t id() const { return id_; }

 private:
  pid_t id_ = 0;
  std::vector<pid_t> pids_;
};

bool is_told() {
  std::ifstream in("/proc/self/schedstat");
  uint64_t ran = 0;
  return static_cast<bool>(in >> ran);
}

}  // namespace

TEST_CASE("processor: what others take is waited for, and a sleeper waits for nobody") {
  if (!is_told()) return;
  const Group busy(3, 0), idle(0, 2);
  std::this_thread::sleep_for(400ms);
  CHECK(group_waited_for_processor(busy.id()) > 200ms);   // two of three wait at any time
  CHECK(waited_for_processor(busy.id()) > 50ms);
  CHECK(group_waited_for_processor(idle.id()) < 200ms);
  CHECK(group_waited_for_processor(0x3fffffff) == 0ms);
}

TEST_CASE("processor: a limit of work is longer on a busy machine, and not for ever") {
  if (!is_told()) return;
  const Group busy(3, 0), idle(0, 1);
  const auto begin = WorkLimit::Clock::now();
  WorkLimit work(200ms, begin), sleep(200ms, begin), short_one(10ms, begin);
  CHECK(work.end() == begin + 200ms);
  std::this_thread::sleep_for(250ms);
  CHECK_FALSE(work.is_over(busy.id()));
  CHECK(work.end() > begin + 250ms);
  CHECK(short_one.is_over(busy.id()));   // five times the limit is the most
  while (!sleep.is_over(idle.id())) std::this_thread::sleep_for(1ms);
  CHECK(WorkLimit::Clock::now() < begin + 1000ms);
}

}  // namespace processor_test
