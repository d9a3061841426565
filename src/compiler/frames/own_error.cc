// How an error of our own is told, and the record that a failed frame leaves.
#include "compiler/frames/report.h"

#include <vector>

namespace cutaway::frames {
namespace {

int written_records = 0;
constexpr int kMostRecords = 20;   // of one process: the first ones tell, and a model with a hundred layers must not fill the disk

/// Every Python frame of this thread, innermost last, as Python prints them.
std::string python_stack() {
  std::vector<std::string> lines;
  ObjectRef frame = ObjectRef::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    ObjectRef code = ObjectRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    auto* c = reinterpret_cast<PyCodeObject*>(code.get());
    const char *file = PyUnicode_AsUTF8(c->co_filename), *name = PyUnicode_AsUTF8(c->co_qualname);
    lines.push_back(std::string(file ? file : "?") + ":" + std::to_string(PyFrame_GetLineNumber(f)) + " in " + (name ? name : "?"));
    frame = ObjectRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  PyErr_Clear();
  std::string out;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) out += "\n     " + *it;
  return out;
}

std::string indented(const std::string& text) {
  std::string out = "\n     ";
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') out += text[i];
    else if (i + 1 < text.size()) out += "\n     ";
  }
  return out;
}

}  // namespace

BreakReason internal_reason(const InternalError& error) {
  BreakReason r = error.where;
  r.id = "internal-error";
  r.what = "an error of cutaway's own while capturing" + (error.instruction.empty() ? std::string() : " " + error.instruction) + ": " + error.error.what;
  return r;
}

std::string internal_text(const std::string& function, const InternalError& error, const std::string& record, bool raises) {
  std::string out = function + (raises ? ": " : " runs eagerly: ") + reason_text(internal_reason(error)) + record;
  if (settings().verbose) {
    out += "\n   who called, innermost last:" + python_stack();
    out += "\n   our stack:" + indented(error.backtrace.empty() ? "not known" : error.backtrace);
  } else {
    out += "\n   more: cutaway.options(verbose=True) or TORCHDYNAMO_VERBOSE=1 adds both full stacks";
  }
  if (!raises) out += "\n   more: CUTAWAY_STRICT=1 raises it";
  return out + "\n   please report it" + (record.empty() ? "" : ", with the record");
}

void forget_records() { written_records = 0; }

std::string leave_record(const Session& session, const FailedFrame& failed) {
  if (!session.record || written_records >= kMostRecords) return {};
  ++written_records;
  std::string why;
  try {
    auto path = session.record(failed);
    if (path.ok()) return "\n   record: " + *path + "\n     it holds the code and the data of this call; `cutaway replay --trust " + *path + "` runs its capture alone";
    why = path.error().text();
  } catch (const std::exception& e) {   // of torch, while a tensor is read: an error must not hide behind its own report
    why = e.what();
  }
  PyErr_Clear();
  return "\n   record: none, " + why.substr(0, why.find('\n'));
}

}  // namespace cutaway::frames
