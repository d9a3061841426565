// The sink of this process, for callers at the edge (bindings) that were not handed one. Set once by whoever made a Recorder.
// Code below the edge takes a Sink* argument instead.
#pragma once
#include "core/debug/events.h"

namespace cutaway::debug {

/// Null when nobody listens. Valid until the process ends.
Sink* process_sink();
/// `sink` must live as long as the process; null switches everything off.
void set_process_sink(Sink*);

}  // namespace cutaway::debug
