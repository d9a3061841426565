#include "app/flows/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "core/base/text.h"

namespace cutaway::flows {

ProgressLine::ProgressLine() : is_terminal_(isatty(2)) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (has_line_) std::fputs("\r\033[K", stderr);
  has_line_ = false;
}

void ProgressLine::say(const std::string& text) {
  clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

bool ProgressLine::is_due(bool has_news) const {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - last_).count();
  return since >= (is_terminal_ ? 100 : has_news ? 1000 : 10'000);
}

void ProgressLine::show_line(const std::string& line, bool has_news) {
  if (!is_due(has_news)) return;
  last_ = std::chrono::steady_clock::now();
  if (is_terminal_) {
    clear();
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    has_line_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void ProgressLine::show(const minify::Progress& p) {
  const bool smaller = p.best.nodes != last_nodes_;
  if (!is_due(smaller)) return;
  last_nodes_ = p.best.nodes;
  const std::string kernels = p.new_kernels > 0 ? "  " + base::count_of(static_cast<uint64_t>(p.new_kernels), "new kernel") : "";
  char line[320];
  std::snprintf(line, sizeof line, "%-28s %llu -> %s, %llu -> %s   %llu tried  %.1f/s%s  elapsed %d:%02d%s", std::string(p.pass).c_str(), static_cast<unsigned long long>(p.start.nodes),
                base::count_of(p.best.nodes, "node").c_str(), static_cast<unsigned long long>(p.start.elements), base::count_of(p.best.elements, "element").c_str(), static_cast<unsigned long long>(p.asked),
                p.seconds > 0 ? static_cast<double>(p.asked) / p.seconds : 0.0, kernels.c_str(), static_cast<int>(p.seconds) / 60, static_cast<int>(p.seconds) % 60, is_terminal_ ? "   (Ctrl-C keeps the best so far)" : "");
  show_line(line, smaller);
}

void ProgressLine::show_cells(uint64_t done, uint64_t failures) {
  const bool has_news = failures != last_failures_;
  if (!is_due(has_news)) return;
  last_failures_ = failures;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  char line[200];
  std::snprintf(line, sizeof line, "%s   %s   %.1f/s  elapsed %d:%02d%s", base::count_of(done, "cell").c_str(), base::count_of(failures, "failure").c_str(),
                seconds > 0 ? static_cast<double>(done) / seconds : 0.0, static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60, is_terminal_ ? "   (Ctrl-C; --resume goes on)" : "");
  show_line(line, has_news);
}

}  // namespace cutaway::flows
