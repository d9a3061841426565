// Handing a worker's socket to a process that is there already and waits for one.
#pragma once
#include <string>
#include <vector>

namespace cutaway::worker {

/// Gives the socket CUTAWAY_WORKER_FD to who listens at this abstract address, and returns when that one is gone. Where nobody does, this process
/// becomes `otherwise`, which serves the socket itself. Returns the exit status.
int join(const std::string& address, const std::vector<std::string>& otherwise);

}  // namespace cutaway::worker
