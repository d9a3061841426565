// Reads a stream of events while it grows: what triage does with a script that runs. A whole stream: read_events (events.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/debug/events.h"

namespace cutaway::debug {

class StreamReader {
 public:
  /// The events that `more` completes; a line that is cut off is left for later. `place` stands for the path in errors.
  base::Result<std::vector<StoredEvent>> read(std::string_view more, std::string_view place);

 private:
  std::string rest_;
  size_t line_ = 0;
  bool is_opened_ = false;
};

/// A field of the event; `otherwise` where it is absent or of another type.
std::string text_or(const StoredEvent&, std::string_view key, std::string_view otherwise = "");
int64_t integer_or(const StoredEvent&, std::string_view key, int64_t otherwise = 0);
bool flag_or(const StoredEvent&, std::string_view key, bool otherwise = false);

}  // namespace cutaway::debug
