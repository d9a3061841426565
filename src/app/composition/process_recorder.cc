#include "app/composition/process_recorder.h"

#include <unistd.h>

#include "core/base/files.h"
#include "core/debug/process.h"

namespace cutaway::composition {
namespace {

// One write(2) a line: nothing of Python is touched, so any thread may log without the interpreter's lock.
void write_to_stderr(std::string_view line) {
  static_cast<void>(base::write_all(STDERR_FILENO, line.data(), line.size(), "stderr").ok());   // nowhere is left to complain
}

}  // namespace

debug::Recorder& process_recorder() {
  static debug::Recorder* const made = [] {
    auto* r = new debug::Recorder({.write_line = &write_to_stderr, .stamp = &debug::RunStamp::now});
    debug::set_process_sink(r);
    return r;
  }();
  return *made;
}

const std::filesystem::path& run_folder() {
  static const auto* folder = new std::filesystem::path(debug::RunStamp::now().folder(std::filesystem::absolute(debug::debug_root(&debug::process_environment))));
  return *folder;
}

std::filesystem::path records_folder() {
  const std::string folder = process_recorder().directory_path();
  return (folder.empty() ? std::filesystem::path(debug::debug_root(&debug::process_environment)) / "cutaway_debug" : std::filesystem::path(folder)) / "records";
}

}  // namespace cutaway::composition
