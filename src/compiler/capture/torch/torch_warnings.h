// Warnings that torch issues while its functions run on fakes. They are not the program's: it has not come that far. A call that warns is left
// to CPython, so that the warning comes when the call does, from its line, and past the program's own filters.
#pragma once
#include <Python.h>

#include <string>

namespace cutaway::capture {

/// While one lives nothing that warns is heard, remembered as heard, or counted as the one time that torch warns of something.
class WarningWatch {
 public:
  WarningWatch();
  ~WarningWatch();
  WarningWatch(const WarningWatch&) = delete;
  WarningWatch& operator=(const WarningWatch&) = delete;
  /// The text of the first warning since; empty when there was none.
  std::string end();

 private:
  PyObject* filters_ = nullptr;   // the program's; null: not watching
  bool always_ = false;
};

}  // namespace cutaway::capture
