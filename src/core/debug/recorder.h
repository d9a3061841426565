// The views of one process put together: log, compile_times(), debug directory, event files. A sink whose parts may be changed
// while others write to it. Made at the edge (the Python module, the command), from Settings; the core only sees a Sink*.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/debug/debug_directory.h"
#include "core/debug/events.h"
#include "core/debug/log_filter.h"
#include "core/debug/settings.h"
#include "core/debug/timings.h"

namespace cutaway::debug {

/// What a Recorder needs of the world.
struct RecorderEdge {
  std::function<void(std::string_view line)> write_line;   ///< a line of the log, with its newline; called from any thread
  std::function<RunStamp()> stamp = &RunStamp::now;
};

class Recorder final : public Sink {
 public:
  explicit Recorder(RecorderEdge);
  /// Logs, directory and event file as the settings say; says their notes.
  base::Status apply(const Settings&);

  void write(const Event&) override;
  bool wants(std::string_view topic, Level) const override;
  bool wants_phase(std::string_view topic, Level) const override;
  bool keeps_file(std::string_view file) const override;
  std::string keep_file(const ArtifactText&) override;

  void set_logs(LogFilter);
  LogFilter logs() const;
  /// A new run folder from now on, or none (Ladder::off).
  void set_directory(const std::string& root, FileChoice);
  /// The run's folder, or empty when the directory is off. It is created with the first thing written to it.
  std::string directory_path() const;
  /// Also writes to this sink, until detach.
  void attach(std::shared_ptr<Sink>);
  void detach(const Sink*);
  Timings& timings() { return *timings_; }
  /// A line for people, outside of the stream: `cutaway: …`.
  void tell(std::string_view) const;

 private:
  void changed();   // holds the lock: recomputes the list and its summary
  RecorderEdge edge_;
  mutable std::shared_mutex mutex_;
  LogFilter logs_;
  std::shared_ptr<Sink> log_;
  std::shared_ptr<Timings> timings_ = std::make_shared<Timings>();
  std::shared_ptr<DebugDirectory> directory_;
  std::shared_ptr<Sink> events_file_;
  std::vector<std::shared_ptr<Sink>> attached_;
  std::vector<Sink*> all_;
  std::atomic<int> loudest_{-1};   // the most detailed level that anybody wants; -1: none. Answers most wants() without the lock.
  std::atomic<bool> has_directory_{false};
};

}  // namespace cutaway::debug
