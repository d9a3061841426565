#include "core/debug/log.h"

#include <cstdint>
#include <cstdio>

namespace cutaway::debug {

std::string_view step_topic(Step step) {
  switch (step) {
    case Step::capture: return "capture";
    case Step::backend: return "backend";
    case Step::native: return "native";
  }
  return "native";
}

namespace {

std::string number_text(double value, const char* format) {
  char buffer[64];
  return {buffer, static_cast<size_t>(std::snprintf(buffer, sizeof buffer, format, value))};
}

std::string duration_text(int64_t us) {
  if (us < 1000) return std::to_string(us) + " us";
  if (us < 1000000) return number_text(static_cast<double>(us) / 1e3, "%.1f ms");
  return number_text(static_cast<double>(us) / 1e6, "%.2f s");
}

std::string value_text(const FieldView& value) {
  return std::visit([](auto v) -> std::string {
    using T = decltype(v);
    if constexpr (std::same_as<T, bool>) return v ? "true" : "false";
    else if constexpr (std::same_as<T, int64_t>) return std::to_string(v);
    else if constexpr (std::same_as<T, double>) return number_text(v, "%g");
    else return std::string(v);
  }, value.get());
}

// "step 1 capture toy" or "fuse toy": what the begin and the end of a phase are called.
std::string phase_text(const Event& e) {
  std::string out;
  if (const FieldView* step = e.find("step")) out += "step " + value_text(*step) + " ";
  return out += e.name;
}

bool is_told_elsewhere(std::string_view kind, std::string_view key) {
  if (kind == "begin") return key == "step";
  if (kind == "end") return key == "duration_us" || key == "failed" || key == "error" || key == "step";
  if (kind == "decision") return key == "reason";
  if (kind == "counter") return key == "delta";
  if (kind == "artifact") return key == "path";
  return key == "text";
}

std::string value_of(const Event& e, std::string_view key) {
  const FieldView* v = e.find(key);
  return v ? value_text(*v) : std::string();
}

}  // namespace

std::string log_line(const Event& e, const LogStyle& style) {
  std::string out = style.prefix;
  if (style.time) out += number_text(static_cast<double>(e.time_us) / 1e6, "%.4f ");
  out += e.topic;
  if (e.level != Level::info) out += " " + std::string(level_name(e.level));
  out += ": ";
  if (e.kind == "begin") {
    out += phase_text(e) + " begins";
  } else if (e.kind == "end") {
    const bool failed = e.find("failed") != nullptr;
    const FieldView* duration = e.find("duration_us");
    out += phase_text(e) + (failed ? " FAILED after " : " done in ") + duration_text(duration ? duration->integer() : 0);
    if (const std::string error = value_of(e, "error"); !error.empty()) out += ": " + error;
  } else if (e.kind == "decision") {
    out += std::string(e.name) + ": " + value_of(e, "reason");
  } else if (e.kind == "counter") {
    const FieldView* delta = e.find("delta");
    const int64_t n = delta ? delta->integer() : 0;
    out += std::string(e.name) + (n < 0 ? " " : " +") + std::to_string(n);
  } else if (e.kind == "artifact") {
    out += "wrote " + std::string(e.name) + ": " + value_of(e, "path");
  } else {
    out += value_of(e, "text");
  }
  for (const Field& f : e.fields)
    if (!is_told_elsewhere(e.kind, f.key)) out += "  " + std::string(f.key) + "=" + value_text(f.value);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  for (size_t at = out.find('\n'); at != std::string::npos; at = out.find('\n', at + 1)) out.insert(at + 1, "    ");
  return out += '\n';
}

namespace {
class Log final : public Sink {
 public:
  Log(LogFilter filter, std::function<void(std::string_view)> write_line, LogStyle style)
      : filter_(std::move(filter)), write_line_(std::move(write_line)), style_(std::move(style)) {}
  bool wants(std::string_view topic, Level level) const override { return filter_.shows(topic, level); }
  void write(const Event& e) override {
    if (filter_.shows(e.topic, e.level)) write_line_(log_line(e, style_));
  }

 private:
  LogFilter filter_;
  std::function<void(std::string_view)> write_line_;
  LogStyle style_;
};
}  // namespace

std::unique_ptr<Sink> make_log(LogFilter filter, std::function<void(std::string_view)> write_line, LogStyle style) {
  return std::make_unique<Log>(std::move(filter), std::move(write_line), std::move(style));
}

}  // namespace cutaway::debug
