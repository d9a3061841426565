#include "core/base/processor.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace cutaway::base {
namespace {

namespace fs = std::filesystem;

/// The second number of schedstat: nanoseconds in which it was ready and did not run.
uint64_t waited_ns(const fs::path& task) {
  std::ifstream in(task / "schedstat");
  uint64_t ran = 0, waited = 0;
  return in >> ran >> waited ? waited : 0;
}

uint64_t process_waited_ns(const fs::path& process) {
  uint64_t longest = waited_ns(process);   // of its first thread: there until the process was waited for
  std::error_code code;
  for (fs::directory_iterator task(process / "task", code), end; !code && task != end; task.increment(code)) longest = std::max(longest, waited_ns(task->path()));
  return longest;
}

pid_t group_of(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string text;
  std::getline(in, text);
  const size_t name_end = text.rfind(')');   // the name may hold anything
  if (name_end == std::string::npos) return -1;
  int parent = 0, group = -1;
  char state = 0;
  return std::sscanf(text.c_str() + name_end + 1, " %c %d %d", &state, &parent, &group) == 3 ? group : -1;
}

std::chrono::milliseconds rounded(uint64_t ns) { return std::chrono::milliseconds(static_cast<int64_t>(ns / 1'000'000)); }

}  // namespace

std::chrono::milliseconds waited_for_processor(pid_t process) { return rounded(process_waited_ns(fs::path("/proc") / std::to_string(process))); }

std::chrono::milliseconds group_waited_for_processor(pid_t group) {
  uint64_t sum = 0;
  std::error_code code;
  for (fs::directory_iterator process("/proc", code), end; !code && process != end; process.increment(code)) {
    const std::string name = process->path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos && group_of(process->path()) == group) sum += process_waited_ns(process->path());
  }
  return rounded(sum);
}

bool WorkLimit::is_over(pid_t group) {
  constexpr int kMost = 4;   // times the limit on top: beyond that a hang cannot be told from such a machine
  end_ = begin_ + limit_ + std::clamp(group_waited_for_processor(group) - waited_before_, std::chrono::milliseconds(0), kMost * limit_);
  return Clock::now() >= end_;
}

}  // namespace cutaway::base
