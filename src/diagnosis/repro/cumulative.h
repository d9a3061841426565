// How far every value of a graph is from eager's in a run of the whole compiled graph: errors as they accumulate.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/compare/verdict.h"
#include "diagnosis/repro/meter.h"

namespace cutaway::repro {

struct Cumulative {
  std::vector<std::optional<compare::Verdict>> nodes;   ///< by top-level node; none where it has no value to look at
  std::optional<Values> outputs;                        ///< of the compiled graph while it told its values: storing them may have moved these
  int64_t materialised = -1;                            ///< nodes that have a value in the compiled graph, where the backend tells; else -1
};
/// A backend that can be observed tells the values that its compiled graph holds. For others copies of the graph are compiled that return
/// every value, as many values in one copy as fit a fixed amount of memory; a compiler that fuses compiles such a copy otherwise than the
/// graph itself. `remarks` says what could not be done.
Cumulative measure_cumulative(const oracle::Trial&, const ir::Graph&, const Values& inputs, Meter&, std::vector<std::string>& remarks);

}  // namespace cutaway::repro
