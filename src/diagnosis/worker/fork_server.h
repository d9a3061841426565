// A process that has loaded everything and computes nothing: each request runs in a forked child with limits, so that a crash, a hang or a
// lack of memory ends the child and not the work. Used by the C++ worker and, through the bindings, by the Python one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/result.h"

namespace cutaway::worker {

/// How a child ended.
enum class Ending : uint8_t {
  answered,   ///< the handler returned
  crash,      ///< death by a signal that nobody of ours sent
  hang,       ///< still running when its time was up
  memory,     ///< allocation failed, or a thread could not be made
  lost,       ///< it exited without an answer
};
std::string_view ending_name(Ending);

/// Runs in the child. May call std::_Exit, crash or never return; that is what the server is for.
using Handler = std::function<std::string(const std::string& body)>;

/// Around each fork, for a process that has more in it than this code (a Python interpreter). May be empty.
struct ForkHooks {
  std::function<void()> before, after_in_parent, after_in_child;
};

/// Serves until the other side closes `fd`. A request is a JSON object {"id", "timeout_ms", "max_bytes", "body"}; up to as many children run at
/// once as there are open requests. The answer: {"id", "ending", "signal", "exit_code", "body", "output", "ms", "peak_kb", "phase"}; `output` is the
/// end of what the child printed, `phase` what it was doing (phase.h). {"id": …, "cancel": true} kills that child and is not answered.
/// The caller must not have run a parallel region: a child forked after one hangs (libgomp).
base::Status serve(int fd, const Handler&, const ForkHooks& = {});

}  // namespace cutaway::worker
