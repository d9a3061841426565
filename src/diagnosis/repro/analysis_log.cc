#include "diagnosis/repro/analysis_log.h"

namespace cutaway::repro {

AnalysisLog::AnalysisLog(const std::string& path) {
  if (!path.empty()) file_ = std::fopen(path.c_str(), "ae");
}
AnalysisLog::~AnalysisLog() {
  if (file_) std::fclose(file_);
}

void AnalysisLog::write(const std::string& line) {
  if (!file_) return;
  std::fputs((line + "\n").c_str(), file_);
  std::fflush(file_);   // the next thing may be the last
}
void AnalysisLog::part(const std::string& key) { write("part " + key); }
void AnalysisLog::done() { write("done"); }
void AnalysisLog::say(const std::string& text) {
  last_ = std::chrono::steady_clock::now();
  write("say " + text);
}
void AnalysisLog::say_now_and_then(const std::string& text) {
  if (std::chrono::steady_clock::now() - last_ > std::chrono::seconds(2)) say(text);
}

}  // namespace cutaway::repro
