// How long a program has waited for a processor: on a busy machine the clock goes on while nothing of it is done.
#pragma once
#include <sys/types.h>

#include <chrono>

namespace cutaway::base {

/// Since the process began: the time in which it could have run and others did; of its threads, the one that waited the longest. Zero where the
/// system does not tell.
std::chrono::milliseconds waited_for_processor(pid_t process);
/// Of all processes of a group that are there now, together: a program that waits for its compiler has waited as long as that one.
std::chrono::milliseconds group_waited_for_processor(pid_t group);

/// A limit of work, not of the clock: what was waited for a processor comes on top. It is never more than a few times as long.
class WorkLimit {
 public:
  using Clock = std::chrono::steady_clock;
  /// `waited_before`: by the group, when it began.
  WorkLimit(std::chrono::milliseconds limit, Clock::time_point begin, std::chrono::milliseconds waited_before = {}) : limit_(limit), waited_before_(waited_before), begin_(begin), end_(begin + limit) {}
  /// Not over before this; it may move on.
  Clock::time_point end() const { return end_; }
  /// Asked after end(): whether it is over by what the group has waited.
  bool is_over(pid_t group);

 private:
  std::chrono::milliseconds limit_, waited_before_;
  Clock::time_point begin_, end_;
};

}  // namespace cutaway::base
