// One plan for many sizes: the frame is captured at several, and what is the same up to integers becomes one graph with symbols.
#pragma once
#include "compiler/frames/session.h"

namespace cutaway::frames {

/// As session.capture, with the sizes that options.dynamic names (and those that the user marked) as symbols where that works; else
/// static, and `why` says so.
CaptureResult capture_sizes(const Session&, const FrameView&, const bytecode::Code&, const CaptureOptions&, const Compile&, std::string& why);

}  // namespace cutaway::frames
