// Where in the user's Python program we are: the innermost frame that is neither torch's nor ours.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::bindings {

/// Asks the interpreter for the current line; remembers what it learned of code objects. Use and destroy it with the GIL, except
/// for here(), which takes it: torch's bindings call operators without.
class PythonLocation {
 public:
  /// Frames of files below these folders are passed over.
  explicit PythonLocation(std::vector<std::string> skipped_folders) : skipped_(std::move(skipped_folders)) {}
  ir::Location here();
  /// A number for the present place, the same whenever the program is there again, and never 0.
  uint64_t place();
  /// Path of the module that is running, for Location::module.
  void enter_module(std::string path) { modules_.push_back(std::move(path)); }
  void leave_module() { if (!modules_.empty()) modules_.pop_back(); }

 private:
  struct Code { nanobind::object keep; bool is_skipped = false; std::string file, function; };
  const Code& describe(nanobind::object code);
  nanobind::object user_frame(const Code** code);
  std::vector<std::string> skipped_, modules_;
  std::unordered_map<PyObject*, Code> codes_;
  std::unordered_map<std::string, uint64_t> places_;
  std::string key_;
};

}  // namespace cutaway::bindings
