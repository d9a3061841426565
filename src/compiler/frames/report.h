// How the outcome of a compilation is told: exceptions of cutaway.exc, events, counters, listeners.
#pragma once
#include <string>

#include "compiler/frames/session.h"
#include "core/base/result.h"

namespace cutaway::frames {

/// Raises cutaway.exc.<type>(text) with the reason's parts as attributes (`reason_id`, `reason`, `hint`, `user_stack`).
void raise(const char* type, const std::string& text, const BreakReason* reason = nullptr);
/// Fills in the source lines of the stack, by Python's linecache, where they are missing.
void add_source_lines(BreakReason&);
/// Listeners, counters and events of one compilation.
void tell(const CompileRecord&);
/// One line on standard error for people, through the log.
void warn(const std::string& topic, const std::string& text);
/// The exception that is set, as text; it stays set.
std::string raised_text();

}  // namespace cutaway::frames
