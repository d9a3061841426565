#include "core/debug/recorder.h"

#include <algorithm>
#include <mutex>

#include "core/debug/log.h"
#include "core/debug/topics.h"

namespace cutaway::debug {

Recorder::Recorder(RecorderEdge edge) : edge_(std::move(edge)) { set_logs(LogFilter()); }

void Recorder::tell(std::string_view line) const {
  if (edge_.write_line) edge_.write_line("cutaway: " + std::string(line) + "\n");
}

base::Status Recorder::apply(const Settings& settings) {
  if (!settings.events_file.empty()) {
    EventFileOptions options;
    options.on_error = [this](const base::Error& e) { tell(e.text()); };
    CUTAWAY_TRY_ASSIGN(std::shared_ptr<Sink> file, open_event_file(settings.events_file, std::move(options)));
    const std::unique_lock lock(mutex_);
    events_file_ = std::move(file);
    changed();
  }
  set_logs(settings.logs);
  set_directory(settings.debug_root, settings.files);
  if (!settings.help.empty()) tell("topics of CUTAWAY_LOGS, with + (all of it), - (errors only) or =level\n" + settings.help);
  for (const std::string& note : settings.notes) say(this, "session", Level::info, note);
  return {};
}

void Recorder::changed() {
  all_.clear();
  for (Sink* s : {log_.get(), static_cast<Sink*>(timings_.get()), static_cast<Sink*>(directory_.get()), events_file_.get()})
    if (s) all_.push_back(s);
  for (const auto& s : attached_) all_.push_back(s.get());
  int loudest = -1;
  for (const Sink* s : all_) {
    for (int level = 3; level > loudest; --level) {
      // A topic outside the table stands for all such topics.
      const bool wanted = s->wants("", static_cast<Level>(level)) ||
                          std::ranges::any_of(topics(), [&](const Topic& t) { return s->wants(t.name, static_cast<Level>(level)); });
      if (wanted) loudest = level;
    }
  }
  loudest_ = loudest;
  has_directory_ = directory_ != nullptr || !attached_.empty();
}

void Recorder::write(const Event& e) {
  const std::shared_lock lock(mutex_);
  for (Sink* s : all_) s->write(e);
}

bool Recorder::wants(std::string_view topic, Level level) const {
  if (static_cast<int>(level) > loudest_.load(std::memory_order_relaxed)) return false;
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(all_, [&](const Sink* s) { return s->wants(topic, level); });
}

bool Recorder::wants_phase(std::string_view topic, Level level) const {
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(all_, [&](const Sink* s) { return s->wants_phase(topic, level); });
}

bool Recorder::keeps_file(std::string_view file) const {
  if (!has_directory_.load(std::memory_order_relaxed)) return false;
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(all_, [&](const Sink* s) { return s->keeps_file(file); });
}

std::string Recorder::keep_file(const ArtifactText& artifact) {
  const std::shared_lock lock(mutex_);
  std::string path;
  for (Sink* s : all_)
    if (std::string kept = s->keep_file(artifact); path.empty()) path = std::move(kept);
  return path;
}

void Recorder::set_logs(LogFilter filter) {
  const std::unique_lock lock(mutex_);
  logs_ = filter;
  if (edge_.write_line) log_ = make_log(std::move(filter), edge_.write_line);
  changed();
}

LogFilter Recorder::logs() const {
  const std::shared_lock lock(mutex_);
  return logs_;
}

void Recorder::set_directory(const std::string& root, FileChoice files) {
  std::shared_ptr<DebugDirectory> directory;
  if (files.ladder() != Ladder::off) {
    DirectoryOptions options;
    options.root = root;
    options.files = std::move(files);
    options.stamp = edge_.stamp();
    options.tell = [this](std::string_view line) { tell(line); };
    options.on_error = [this](const base::Error& e) { tell(e.text()); };
    directory = std::make_shared<DebugDirectory>(std::move(options));
  }
  const std::unique_lock lock(mutex_);
  directory_ = std::move(directory);
  changed();
}

std::string Recorder::directory_path() const {
  const std::shared_lock lock(mutex_);
  return directory_ ? directory_->path().string() : std::string();
}

void Recorder::attach(std::shared_ptr<Sink> sink) {
  const std::unique_lock lock(mutex_);
  attached_.push_back(std::move(sink));
  changed();
}

void Recorder::detach(const Sink* sink) {
  std::shared_ptr<Sink> last;   // destroyed after the lock is gone
  const std::unique_lock lock(mutex_);
  const auto it = std::ranges::find(attached_, sink, [](const auto& s) { return static_cast<const Sink*>(s.get()); });
  if (it == attached_.end()) return;
  last = std::move(*it);
  attached_.erase(it);
  changed();
}

}  // namespace cutaway::debug
