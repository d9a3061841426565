// A file in which an analysis says what it is about to do, so that whoever waits can show it, and knows what it died of.
#pragma once
#include <chrono>
#include <cstdio>
#include <string>

namespace cutaway::repro {

/// Lines: "part KEY" before a part is put to the backend, "done" after it, "say TEXT" for people. Nothing is written without a path.
class AnalysisLog {
 public:
  explicit AnalysisLog(const std::string& path);
  ~AnalysisLog();
  AnalysisLog(const AnalysisLog&) = delete;
  AnalysisLog& operator=(const AnalysisLog&) = delete;
  void part(const std::string& key);
  void done();
  void say(const std::string& text);
  /// say(), but not more often than every other second.
  void say_now_and_then(const std::string& text);

 private:
  void write(const std::string& line);
  std::FILE* file_ = nullptr;
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace cutaway::repro
