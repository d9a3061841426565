// A sink that keeps its events in memory, for tests and for callers that look at what one call told (explain).
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "core/debug/events.h"

namespace cutaway::debug {

class MemorySink final : public Sink {
 public:
  explicit MemorySink(Level most = Level::debug) : most_(most) {}
  bool wants(std::string_view, Level level) const override { return level <= most_; }
  void write(const Event& e) override {
    if (!wants(e.topic, e.level)) return;
    StoredEvent s;
    s.kind = e.kind;
    s.topic = e.topic;
    s.name = e.name;
    s.level = level_name(e.level);
    s.time_us = e.time_us;
    s.phase = e.phase;
    s.outer = e.outer;
    s.thread = e.thread;
    for (const Field& f : e.fields) s.fields.emplace_back(f.key, f.value.stored());
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(s));
  }
  /// What was told so far, in order.
  std::vector<StoredEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  Level most_;
  mutable std::mutex mutex_;
  std::vector<StoredEvent> events_;
};

}  // namespace cutaway::debug
