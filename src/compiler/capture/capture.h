// Capture of one frame: the bytecode is interpreted over real objects, torch's calls are recorded on fake tensors, and the result is a plan
// that does the same without the interpreter. Nothing of the user's runs and nothing real is written to.
#pragma once
#include "compiler/frames/plan.h"

namespace cutaway::capture {

/// With the GIL. A break makes a plan that ends before the instruction that could not be captured. Leaves no Python exception set, except
/// with BackendRaised.
frames::CaptureResult capture_frame(const frames::FrameView&, const bytecode::Code&, const frames::CaptureOptions&, const frames::Compile&);

}  // namespace cutaway::capture
