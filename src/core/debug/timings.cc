#include "core/debug/timings.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/debug/topics.h"

namespace cutaway::debug {

double TimingRow::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

bool Timings::wants_phase(std::string_view topic, Level level) const {
  if (level > Level::info) return false;
  const std::optional<size_t> i = topic_index(component_of(topic));
  return i && topics()[*i].compiles;
}

void Timings::write(const Event& e) {
  const bool begins = e.kind == "begin";
  if ((!begins && e.kind != "end") || !wants_phase(e.topic, e.level)) return;
  const std::lock_guard lock(mutex_);
  if (begins) {
    Open open{.function = {}, .start_us = e.time_us};
    if (const FieldView* function = e.find("function")) open.function = function->text();
    else if (const auto outer = open_.find(e.outer); outer != open_.end()) open.function = outer->second.function;
    open_.emplace(e.phase, std::move(open));
    return;
  }
  const auto open = open_.find(e.phase);
  if (open == open_.end()) return;   // began before this view was there
  std::string phase(e.topic);
  if (e.name != e.topic) phase += "." + std::string(e.name);
  const auto [row, is_new] = row_of_.try_emplace({phase, open->second.function}, rows_.size());
  if (is_new) rows_.push_back({phase, open->second.function, {}});
  rows_[row->second].seconds.push_back(static_cast<double>(e.time_us - open->second.start_us) / 1e6);
  open_.erase(open);
}

std::vector<TimingRow> Timings::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

void Timings::reset() {
  const std::lock_guard lock(mutex_);
  rows_.clear();
  row_of_.clear();
}

std::string Timings::text() const {
  const std::vector<TimingRow> rows = this->rows();
  if (rows.empty()) return "nothing was compiled\n";
  size_t phase_width = 5, function_width = 8;
  for (const TimingRow& r : rows) {
    phase_width = std::max(phase_width, r.phase.size());
    function_width = std::max(function_width, r.function.size());
  }
  const auto padded = [](std::string text, size_t width) { text.resize(std::max(text.size(), width), ' '); return text; };
  std::string out = padded("phase", phase_width) + "  " + padded("function", function_width) + "  times   total s  each s\n";
  constexpr size_t kMostShown = 8;
  for (const TimingRow& r : rows) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "  %5zu  %8.4f  ", r.seconds.size(), r.sum());
    out += padded(r.phase, phase_width) + "  " + padded(r.function.empty() ? "-" : r.function, function_width) + numbers;
    for (size_t i = 0; i < std::min(r.seconds.size(), kMostShown); ++i) {
      std::snprintf(numbers, sizeof numbers, "%s%.4f", i ? ", " : "", r.seconds[i]);
      out += numbers;
    }
    if (r.seconds.size() > kMostShown) out += ", …";
    out += '\n';
  }
  return out;
}

}  // namespace cutaway::debug
