// Record and replay of one frame: a capture that failed is written down with everything it read, and is run again from that alone, in
// another process or on another machine. docs/formats/frame_record.md is the format; core/record reads it without Python.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "compiler/frames/failed_frame.h"
#include "core/base/result.h"
#include "core/debug/events.h"
#include "core/record/frame_record.h"

namespace cutaway::replay {

struct RecordOptions {
  std::filesystem::path folder;          ///< gets one directory a record
  std::map<std::string, std::string> versions;   ///< cutaway
  uint64_t max_bytes = uint64_t{256} << 20;   ///< of tensor data; what is beyond is replaced by seeded data
};
/// Writes the frame into a new directory of the folder and gives its path. With the GIL; runs nothing of the user's.
base::Result<std::string> write_frame(const frames::FailedFrame&, const RecordOptions&);

struct Replayed {
  record::Failure recorded;
  bool is_captured = false;     ///< nothing failed this time
  record::Failure now;          ///< otherwise
  bool is_same = false;         ///< kind, id and innermost line agree
  std::string plan;             ///< of a capture that went through
};
/// Makes the record's objects, which runs its code and imports what it names, and captures the frame. Only for a record that is trusted.
base::Result<Replayed> replay_frame(const std::filesystem::path& directory, debug::Sink*);

}  // namespace cutaway::replay
