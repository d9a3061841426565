// Messages between the engine and a worker: 8 bytes of length (little endian), then UTF-8 text. docs/formats/worker.md says what is in them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::worker {

/// Whole, or an Error. Does not raise SIGPIPE when the other side is gone.
base::Status send_message(int fd, std::string_view text);
/// The next message; nothing when the other side closed between two messages. Longer than 1 GiB is refused.
base::Result<std::optional<std::string>> receive_message(int fd);

}  // namespace cutaway::worker
