// How the outcome of a compilation is reported: exceptions of cutaway.exc, events, counters, listeners.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/frames/session.h"
#include "core/base/result.h"
#include "core/debug/events.h"

namespace cutaway::frames {

/// The class cutaway.exc.<name>. Null, with the error that Python set, when there is none.
ObjectRef exception_class(const char* name);
/// Raises cutaway.exc.<type>(text) with the reason's parts as attributes (`reason_id`, `reason`, `hint`, `user_stack`).
void raise(const char* type, const std::string& text, const BreakReason* reason = nullptr);
/// Fills in the source lines of the stack, by Python's linecache, where they are missing.
void add_source_lines(BreakReason&);
/// Our own error as a reason: what, and at which instruction.
BreakReason internal_reason(const InternalError&);
/// The message of our own error: the reason, the record's path, what to set for more; with `verbose` both full stacks. `record`: its path, or why there is none.
std::string internal_text(const std::string& function, const InternalError&, const std::string& record, bool raises);
/// Writes a record of the frame and returns the line that says its path (or why there is none); empty when none is wanted.
std::string leave_record(const Session&, const FailedFrame&);
/// Records count anew from here: there is a limit to how many a process leaves.
void forget_records();
/// One compilation: its events, from which counters() is made, and then its listeners.
void tell(const CompileRecord&);
/// The counters of a process, from the events that it wrote.
std::map<std::string, std::map<std::string, int64_t>> count_frames(const std::vector<debug::StoredEvent>&);
/// Whether a record has a reader besides the log.
bool somebody_listens();
/// What is reported once a place is reported again.
void forget_what_was_told();
/// One line on standard error for people, through the log.
void warn(const std::string& topic, const std::string& text);
/// The exception that is set, as text; it stays set.
std::string raised_text();

}  // namespace cutaway::frames
