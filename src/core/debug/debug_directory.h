// The debug directory: one folder a run, one a component, one a compiled graph, with the files that people look for.
// A view of the event stream (logs, times, events.jsonl) and the place where artifacts are kept. Nothing is created before
// the first event or file arrives. docs/formats/debug_directory.md is its document.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "core/base/result.h"
#include "core/debug/events.h"
#include "core/debug/timings.h"

namespace cutaway::debug {

/// The ladder of CUTAWAY_DEBUG. Each rung has all that the rungs below it have.
enum class Ladder : uint8_t { off = 0, summary = 1, reasons = 2, graphs = 3, code = 4, everything = 5, only_when_asked = 6 };

/// A file of the debug directory, by its name without the ending.
struct DirectoryFile {
  std::string_view name;
  Ladder from;                ///< written from this rung on; only_when_asked: expensive, named by a switch or not at all
  std::string_view summary;
};
std::span<const DirectoryFile> directory_files();

/// Which files are written: a rung of the ladder, and single files switched on or off.
class FileChoice {
 public:
  explicit FileChoice(Ladder ladder = Ladder::off) : ladder_(ladder) {}
  /// "diagram,-fx_graph_runnable": a name (or +name) switches a file on, -name off. Unknown names are errors with the nearest one.
  static base::Result<FileChoice> parse(Ladder, std::string_view words, std::string_view place);
  Ladder ladder() const { return ladder_; }
  /// `file` with or without its ending. False for names outside directory_files().
  bool has(std::string_view file) const;

 private:
  Ladder ladder_;
  std::map<std::string, bool, std::less<>> switches_;
};

/// What makes the name of a run's folder; given by the caller so that tests are exact.
struct RunStamp {
  std::string time;   ///< "2026_01_31_12_00_00_123456"
  int64_t pid = 0;
  /// Local time and this process.
  static RunStamp now();
  /// root/cutaway_debug/run_<time>-pid_<pid>: whatever a run leaves behind is there.
  std::filesystem::path folder(const std::filesystem::path& root) const;
};

struct DirectoryOptions {
  std::string root = ".";   ///< the folder that gets "cutaway_debug"
  FileChoice files;
  RunStamp stamp;
  std::function<void(std::string_view line)> tell;      ///< told once, in one line, where the run's folder is
  std::function<void(const base::Error&)> on_error;     ///< told of each file that could not be written
};

class DebugDirectory final : public Sink {
 public:
  explicit DebugDirectory(DirectoryOptions);
  ~DebugDirectory() override;

  void write(const Event&) override;
  bool wants(std::string_view topic, Level) const override;
  bool wants_phase(std::string_view topic, Level) const override;
  bool keeps_file(std::string_view file) const override { return options_.files.has(file); }
  std::string keep_file(const ArtifactText&) override;

  /// Writes a file into the folder of a component and graph and returns its path; empty where the file is switched off. A name
  /// outside directory_files() is an error. A second file of the same name and graph is called "name.2.ext": nothing is lost.
  base::Result<std::string> write_artifact(const ArtifactText&);
  /// The run's folder, which is there only after something was written.
  const std::filesystem::path& path() const { return run_; }
  bool is_created() const { return created_.load(); }

 private:
  struct GraphFolder;
  struct Place { std::string component, graph; };
  base::Status create();                                                   // all of these hold the mutex
  base::Result<std::filesystem::path> component_folder(std::string_view component);
  base::Result<GraphFolder*> graph_folder(const Place&);
  base::Status append_log(const std::filesystem::path& folder, base::FileDescriptor& log, std::string_view line);
  base::Status write_views(const Event&);
  void report(base::Error);

  DirectoryOptions options_;
  std::filesystem::path run_;
  std::atomic<bool> created_{false};
  std::mutex mutex_;
  bool broken_ = false;
  std::unique_ptr<Sink> events_;
  Timings times_;
  std::map<std::string, base::FileDescriptor, std::less<>> component_logs_;
  std::map<std::string, std::vector<std::string>, std::less<>> graphs_;    // component -> graph names, their places are ordinals
  std::map<std::pair<std::string, std::string>, std::unique_ptr<GraphFolder>> folders_;
  std::map<uint64_t, Place> place_of_phase_;
};

}  // namespace cutaway::debug
