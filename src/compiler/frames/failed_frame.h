// A frame whose capture failed, for whoever writes it down (compiler/replay). Everything is borrowed for the time of the call.
#pragma once
#include <functional>
#include <string>

#include "compiler/frames/call_log.h"
#include "compiler/frames/plan.h"

namespace cutaway::frames {

struct FailedFrame {
  const FrameView& frame;
  const CaptureOptions& options;
  const BreakReason& reason;
  const CallLog& calls;
  bool is_internal = false;      ///< our own error; else something that capture does not support
  std::string instruction;       ///< "BUILD_MAP at 12": where it happened
};
/// Writes the frame as a record and returns its path.
using RecordFrame = std::function<base::Result<std::string>(const FailedFrame&)>;

}  // namespace cutaway::frames
