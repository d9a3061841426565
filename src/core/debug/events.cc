#include "core/debug/events.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

namespace cutaway::debug {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::error: return "error";
    case Level::warning: return "warning";
    case Level::info: return "info";
    case Level::debug: return "debug";
  }
  return "debug";
}

FieldView::FieldView(const FieldValue& value)
    : value_(std::visit([](const auto& v) -> decltype(value_) {
        if constexpr (std::same_as<std::decay_t<decltype(v)>, std::string>) return std::string_view(v);
        else return v;
      }, value)) {}

std::string_view FieldView::text() const {
  const std::string_view* t = std::get_if<std::string_view>(&value_);
  return t ? *t : std::string_view();
}
int64_t FieldView::integer(int64_t otherwise) const {
  const int64_t* n = std::get_if<int64_t>(&value_);
  return n ? *n : otherwise;
}
FieldValue FieldView::stored() const {
  return std::visit([](auto v) -> FieldValue {
    if constexpr (std::same_as<decltype(v), std::string_view>) return std::string(v);
    else return v;
  }, value_);
}

const FieldView* Event::find(std::string_view key) const {
  for (const Field& f : fields)
    if (f.key == key) return &f.value;
  return nullptr;
}

uint64_t now_us() {
  using clock = std::chrono::steady_clock;
  static const clock::time_point start = clock::now();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - start).count());
}

namespace detail {
struct PhaseState {
  Sink* sink;
  std::string topic, name;
  Level level;
  uint64_t number, outer, start_us;
  int exceptions;
  std::vector<std::pair<std::string, FieldValue>> notes;
  std::string error;
  bool failed = false;
  std::atomic<bool> ended{false};
};
}  // namespace detail

namespace {
using detail::PhaseState;

uint32_t thread_ordinal() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t mine = ++threads;
  return mine;
}

// Shared ownership, because a Phase held by Python may end on another thread or out of order: an ended state is skipped
// here and dropped when it comes to the top.
std::vector<std::shared_ptr<PhaseState>>& open_phases() {
  thread_local std::vector<std::shared_ptr<PhaseState>> phases;
  return phases;
}

uint64_t innermost_phase(const Sink* sink) {
  auto& phases = open_phases();
  while (!phases.empty() && phases.back()->ended.load(std::memory_order_acquire)) phases.pop_back();
  for (auto it = phases.rbegin(); it != phases.rend(); ++it)
    if ((*it)->sink == sink && !(*it)->ended.load(std::memory_order_acquire)) return (*it)->number;
  return 0;
}

void write_event(Sink& sink, std::string_view kind, std::string_view topic, std::string_view name, Level level, std::span<const Field> fields) {
  Event e;
  e.kind = kind;
  e.topic = topic;
  e.name = name;
  e.level = level;
  e.time_us = now_us();
  e.phase = innermost_phase(&sink);
  e.thread = thread_ordinal();
  e.fields = fields;
  sink.write(e);
}
}  // namespace

void Phase::begin(Sink& sink, std::string_view topic, std::string_view name, std::span<const Field> fields, Level level) {
  static std::atomic<uint64_t> numbers{0};
  state_ = std::make_shared<PhaseState>();
  PhaseState& s = *state_;
  s.sink = &sink;
  s.topic = topic;
  s.name = name;
  s.level = level;
  s.number = ++numbers;
  s.outer = innermost_phase(&sink);
  s.exceptions = std::uncaught_exceptions();
  s.start_us = now_us();
  open_phases().push_back(state_);
  Event e{"begin", s.topic, s.name, level, s.start_us, s.number, s.outer, thread_ordinal(), fields};
  sink.write(e);
}

void Phase::end() noexcept {
  PhaseState& s = *state_;
  s.ended.store(true, std::memory_order_release);
  const uint64_t now = now_us();
  const bool failed = s.failed || std::uncaught_exceptions() > s.exceptions;
  try {   // a destructor: losing this one line is better than ending the process
    std::vector<Field> fields;
    fields.reserve(s.notes.size() + 3);
    fields.push_back({"duration_us", now - s.start_us});
    if (failed) fields.push_back({"failed", true});
    if (!s.error.empty()) fields.push_back({"error", s.error});
    for (const auto& [key, value] : s.notes) fields.push_back({key, value});
    Event e{"end", s.topic, s.name, s.level, now, s.number, s.outer, thread_ordinal(), fields};
    s.sink->write(e);
  } catch (...) {
  }
  innermost_phase(s.sink);   // drops the ended states from the top
}

void Phase::add_note(std::string_view key, FieldView value) {
  for (auto& [k, v] : state_->notes)
    if (k == key) { v = value.stored(); return; }
  state_->notes.emplace_back(key, value.stored());
}

void Phase::mark_failed(std::string_view error) {
  state_->failed = true;
  state_->error = error;
}

uint64_t Phase::number() const { return state_ ? state_->number : 0; }

namespace detail {
void decide(Sink& sink, std::string_view topic, std::string_view name, std::string_view reason, std::span<const Field> fields, Level level) {
  std::vector<Field> all;
  all.reserve(fields.size() + 1);
  all.push_back({"reason", reason});
  all.insert(all.end(), fields.begin(), fields.end());
  write_event(sink, "decision", topic, name, level, all);
}
void count(Sink& sink, std::string_view topic, std::string_view name, int64_t delta) {
  const Field field{"delta", delta};
  write_event(sink, "counter", topic, name, Level::info, {&field, 1});
}
void say(Sink& sink, std::string_view topic, Level level, std::string_view text) {
  const Field field{"text", text};
  write_event(sink, "message", topic, "", level, {&field, 1});
}
void artifact(Sink& sink, std::string_view topic, std::string_view name, std::string_view path) {
  const Field field{"path", path};
  write_event(sink, "artifact", topic, name, Level::info, {&field, 1});
}
}  // namespace detail

namespace {
class Tee final : public Sink {
 public:
  explicit Tee(std::vector<Sink*> sinks) : sinks_(std::move(sinks)) { std::erase(sinks_, nullptr); }
  void write(const Event& e) override {
    for (Sink* s : sinks_) s->write(e);
  }
  bool wants(std::string_view topic, Level level) const override {
    return std::ranges::any_of(sinks_, [&](const Sink* s) { return s->wants(topic, level); });
  }
  bool wants_phase(std::string_view topic, Level level) const override {
    return std::ranges::any_of(sinks_, [&](const Sink* s) { return s->wants_phase(topic, level); });
  }
  bool keeps_file(std::string_view file) const override {
    return std::ranges::any_of(sinks_, [&](const Sink* s) { return s->keeps_file(file); });
  }
  std::string keep_file(const ArtifactText& artifact) override {
    std::string path;
    for (Sink* s : sinks_)
      if (std::string kept = s->keep_file(artifact); path.empty()) path = std::move(kept);
    return path;
  }

 private:
  std::vector<Sink*> sinks_;
};
}  // namespace

std::unique_ptr<Sink> tee(std::vector<Sink*> sinks) { return std::make_unique<Tee>(std::move(sinks)); }

}  // namespace cutaway::debug
