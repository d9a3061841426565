// The sink that writes JSON lines. No lock: O_APPEND makes each write(2) go to the end whole, between threads and processes,
// and a process forked in the middle finds nothing locked.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "core/base/files.h"
#include "core/debug/event_json.h"
#include "core/debug/events.h"

namespace cutaway::debug {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

class EventFile final : public Sink {
 public:
  EventFile(base::FileDescriptor fd, std::string path, EventFileOptions options)
      : fd_(std::move(fd)), path_(std::move(path)), options_(std::move(options)), start_us_(now_us()) {}

  bool wants(std::string_view, Level level) const override { return level <= options_.most && !broken_.load(std::memory_order_relaxed); }

  void write(const Event& e) override {
    if (!wants(e.topic, e.level)) return;
    thread_local std::string line;
    line.clear();
    append_event_line(line, e, ::getpid(), start_us_);
    if (base::Status status = write_line(line); !status.ok() && !broken_.exchange(true) && options_.on_error) options_.on_error(status.error());
    if (line.capacity() > size_t{1} << 20) line = std::string();   // one huge event does not hold its memory for ever
  }

  // After a failure the stream ends: half a line may stand there, and a reader leaves out only the last one.
  base::Status write_line(std::string_view line) { return base::write_all(fd_.get(), line.data(), line.size(), path_); }

 private:
  base::FileDescriptor fd_;
  std::string path_;
  EventFileOptions options_;
  uint64_t start_us_;
  std::atomic<bool> broken_{false};
};

}  // namespace

base::Result<std::unique_ptr<Sink>> open_event_file(const std::string& path, EventFileOptions options) {
  const int replace = options.existing == EventFileOptions::Existing::replace ? O_TRUNC : 0;
  base::FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | replace, 0666));
  if (!fd.is_open()) {
    base::Error e = base::os_error(path, "events cannot be written here", errno);
    e.hint = "give a path in a folder that exists and may be written to";
    return e;
  }
  auto file = std::make_unique<EventFile>(std::move(fd), path, std::move(options));
  std::string line;
  append_stream_line(line, ::getpid(), utc_now());
  CUTAWAY_TRY(file->write_line(line));
  return std::unique_ptr<Sink>(std::move(file));
}

}  // namespace cutaway::debug
