// What a script reads from standard input. A flow runs its script several times; what the first run read is kept, and each run reads the same.
#pragma once
#include <csignal>
#include <cstdint>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/result.h"

namespace cutaway::flows {

/// What Python runs by this name: a file, or a folder with a __main__.py.
base::Status check_script(const std::filesystem::path&);

class ScriptInput {
 public:
  /// `kept`: the file that gets what was read. A file is opened again for each run. A pipe or a terminal is read only as fast as
  /// the script takes it: one that nobody writes to holds nothing up. (The script has a process group of its own and could not read a terminal.)
  explicit ScriptInput(std::filesystem::path kept, int source = 0);
  ~ScriptInput();
  ScriptInput(const ScriptInput&) = delete;
  ScriptInput& operator=(const ScriptInput&) = delete;
  /// The descriptor that becomes the standard input of the run that starts now.
  base::Result<base::FileDescriptor> begin();
  /// Hands on what has arrived. To be called again and again while the script runs.
  base::Status pump();
  /// The run is over.
  void end() { to_script_.close(); }
  const std::filesystem::path& kept() const { return path_; }

 private:
  enum class Kind : uint8_t { none, file, pipe };
  bool read_more();
  std::filesystem::path path_;
  int source_;
  Kind kind_ = Kind::none;
  off_t first_ = 0;                  // of a file: where it was when we got it
  base::FileDescriptor kept_, to_script_;
  uint64_t size_ = 0, sent_ = 0;     // bytes kept; bytes of them that this run has got
  bool is_at_end_ = false;
  struct sigaction before_ {};
};

/// All of standard input: the text of a script that comes that way.
base::Result<std::string> read_all_input(int source = 0);

}  // namespace cutaway::flows
