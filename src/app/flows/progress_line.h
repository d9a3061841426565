// Progress for people: one line that updates on a terminal, plain lines now and then otherwise, on standard error. Colour is not used.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "diagnosis/minify/minify.h"

namespace cutaway::flows {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void show(const minify::Progress&);
  /// Of a sweep: cells answered, failures among them.
  void show_cells(uint64_t done, uint64_t failures);
  /// A line that stays.
  void say(const std::string&);

 private:
  /// Not more often than people read: ten times a second on a terminal, else every ten seconds, or every second with news.
  void show_line(const std::string&, bool has_news);
  bool is_due(bool has_news) const;
  void clear();
  bool is_terminal_, has_line_ = false;
  uint64_t last_nodes_ = 0, last_failures_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace cutaway::flows
