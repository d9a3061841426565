// Calls that capture executed instead of interpreting them, and what they returned: functions that the user called constant, questions about
// torch's state. Kept with the record of a frame that fails, so that the same frame gets the same answers in another process.
#pragma once
#include <Python.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::frames {

struct CallLog {
  struct Call { std::string name; bytecode::ObjectRef value; };
  std::vector<Call> calls;     ///< of the last attempt, in order; with `is_replay` those that are to be given
  bool is_replay = false;
  size_t next = 0;
};
/// Of this thread; null when nobody keeps one.
CallLog*& call_log();
/// A trace begins (a frame may be traced several times).
void begin_call_log();
/// New reference to the result that a record has for this call, or null: then call it.
PyObject* recorded_result(const std::string& name);
void keep_result(const std::string& name, PyObject* value);

}  // namespace cutaway::frames
