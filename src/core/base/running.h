// A command that is started before there is something for it to do, so that it loads beside other work, and that is waited for later.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/subprocess.h"

namespace cutaway::base {

/// A command under way whose output is kept. Destroying it ends it.
class Running {
 public:
  /// `descriptors` as for start_command, besides the three standard ones.
  static Result<Running> start(const Command&, std::string_view input = {}, const std::vector<std::pair<int, int>>& descriptors = {});
  /// Waits for its end, once; the limit of time counts from here. What it has printed until now is in its pipes.
  Result<Output> finish(const RunLimits& = {});

 private:
  Running(Process process, FileDescriptor out, FileDescriptor err, std::string place) : process_(std::move(process)), out_(std::move(out)), err_(std::move(err)), place_(std::move(place)) {}
  Process process_;
  FileDescriptor out_, err_;
  std::string place_;
};

}  // namespace cutaway::base
