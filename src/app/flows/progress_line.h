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
  /// A line that stays.
  void say(const std::string&);

 private:
  void clear();
  bool is_terminal_, has_line_ = false;
  uint64_t last_nodes_ = 0;
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace cutaway::flows
