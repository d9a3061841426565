// Writes an Event as one line of JSON (docs/formats/events.md). By hand, not through a JSON library: the line is made in a
// reused buffer without a tree of nodes, which is what makes a recorded compilation cheap. Reading uses the library.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/debug/events.h"

namespace cutaway::debug {
/// Of the stream's first line; a reader refuses any other.
inline constexpr int64_t kEventsVersion = 1;

/// Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, one for each.
void append_json_text(std::string& out, std::string_view text);
/// Appends the event and a newline; times count from `start_us`.
void append_event_line(std::string& out, const Event&, int64_t pid, uint64_t start_us);
/// The line that opens a stream: version, process, and the time of day in UTC ("2026-01-31T12:00:00Z").
void append_stream_line(std::string& out, int64_t pid, std::string_view began);
}  // namespace cutaway::debug
