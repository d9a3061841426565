#include "compiler/frames/call_log.h"

namespace cutaway::frames {

CallLog*& call_log() {
  thread_local CallLog* log = nullptr;
  return log;
}

void begin_call_log() {
  CallLog* log = call_log();
  if (!log) return;
  log->next = 0;
  if (!log->is_replay) log->calls.clear();
}

PyObject* recorded_result(const std::string& name) {
  CallLog* log = call_log();
  if (!log || !log->is_replay || log->next >= log->calls.size() || log->calls[log->next].name != name) return nullptr;
  return Py_XNewRef(log->calls[log->next++].value.get());
}

void keep_result(const std::string& name, PyObject* value) {
  CallLog* log = call_log();
  if (log && !log->is_replay) log->calls.push_back({name, bytecode::ObjectRef::borrow(value)});
}

}  // namespace cutaway::frames
