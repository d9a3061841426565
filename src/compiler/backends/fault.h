// A backend with planted faults, for tests of the debugger: eager, except where a fault matches.
//   fault:KIND[@compile|@run]:OPERATOR[>OPERATOR][:numel>=N][:numel<=N][:by=X][:p=P]      several faults: joined by '+'
// KIND: exception, crash (SIGSEGV), hang, memory, wrong (adds X to every result), wrongnan (writes a NaN). A fault matches a node of OPERATOR
// ("aten.relu", with or without overload) or, with A>B, a node of B that uses a result of A; numel>=N and numel<=N ask for a first result of that size.
// p is the probability with which a matching fault shows, drawn anew in each process.
#pragma once
#include "compiler/backends/backend.h"

namespace cutaway::backends {
base::Result<std::unique_ptr<Backend>> make_fault(std::string_view parameters);
}
