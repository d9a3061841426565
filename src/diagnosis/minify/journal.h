// Answers on disk, one line each. The engine is deterministic, so a journal is all that resuming needs: a second run asks the same
// questions and finds the answers here until it reaches the point where the first one was killed.
#pragma once
#include <string>
#include <unordered_map>

#include "diagnosis/minify/minify.h"

namespace cutaway::minify {

class Journal {
 public:
  /// In memory only.
  Journal() = default;
  /// Opens or makes the file. Its first line names the start and what is asked; another one is refused. A half-written last line is dropped.
  static base::Result<Journal> open(const std::string& path, const base::Digest& start);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  const Answer* find(const base::Digest&) const;
  /// On disk when this returns.
  base::Status add(const base::Digest&, const Answer&);
  size_t size() const { return answers_.size(); }

 private:
  std::unordered_map<base::Digest, Answer> answers_;
  int fd_ = -1;
  std::string path_;
};

}  // namespace cutaway::minify
