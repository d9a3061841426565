// The Recorder of this process, which all events of the Python module go to, and the folders that a run writes to.
#pragma once
#include <filesystem>

#include "core/debug/recorder.h"

namespace cutaway::composition {

/// Made when first asked for, and then the process's sink (core/debug/process.h). Never destroyed: threads may still tell something while the process ends.
debug::Recorder& process_recorder();
/// Where this process leaves what is not a debug file: cutaway_debug/run_<time>-pid_<pid>, absolute, the same at every call.
const std::filesystem::path& run_folder();
/// Where records of frames go: beside the debug files of this run, else in the place that they would have.
std::filesystem::path records_folder();

}  // namespace cutaway::composition
