// Pieces of a code object's line table (PEP 626): a run of code units and the place in the source that they come from.
#pragma once
#include <string>

namespace cutaway::bytecode {

struct SourceSpan { int line = 0, end_line = 0, column = -1, end_column = -1; };   ///< columns -1: unknown; line <= 0: no place

/// Appends `units` code units at `span`; `previous` is the line that the table stands at (the code's first line at its beginning) and moves.
void append_location(std::string& table, int units, const SourceSpan& span, int& previous);

}  // namespace cutaway::bytecode
