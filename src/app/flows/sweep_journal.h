// What a sweep knows already, on disk: a line for each answer (docs/formats/sweep.md). A line that a kill cut off is dropped.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "app/flows/sweep_flow.h"
#include "core/base/files.h"

namespace cutaway::flows {

class SweepJournal {
 public:
  /// `question` is everything besides the cells that an answer depends on. Makes the file, or with `resume` reads the one that is there; one with another question is refused, and so is
  /// an existing one without `resume`.
  static base::Result<SweepJournal> open(const std::filesystem::path&, const std::string& question, bool resume);
  const SweepCell* cell(const std::string& key) const;
  const SweepFailure* reduced(const std::string& key) const;   ///< by the key of the cell that was cut down
  base::Status add(const SweepCell&);
  base::Status add(const std::string& key, const SweepFailure&);
  size_t size() const { return cells_.size(); }

 private:
  base::Status append(const std::string& line);
  std::filesystem::path path_;
  base::FileDescriptor file_;
  std::map<std::string, SweepCell> cells_;
  std::map<std::string, SweepFailure> reduced_;
};

base::Json cell_to_json(const SweepCell&);
base::Json failure_to_json(const SweepFailure&);

}  // namespace cutaway::flows
