// The symbols of one plan: guards over their numbers, and integers and floats of its recipes that follow from them.
// Main type: PlanSymbols.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/frames/plan.h"
#include "core/symbolic/search.h"

namespace cutaway::frames {

/// Names of symbols, where their numbers are read, how the user knows them: slot by slot. Floats have no name among sizes.
struct PlanSymbols {
  std::vector<std::string> names;
  std::vector<const guards::Source*> sources;
  std::vector<std::string> shown;
  std::vector<size_t> floats;   ///< slots
  std::vector<std::string> float_names() const;
  /// A text of expressions with symbols as the user knows them: "x.shape[0] <= 512".
  std::string as_shown(const std::string& text) const;
};

/// A guard over the numbers of all symbols, which `holds` is given by slot.
void add_relation(Plan&, const PlanSymbols&, std::string text, decltype(guards::Guard::relation) holds);
/// False where the guard names another symbol.
bool add_relation(Plan&, const PlanSymbols&, const symbolic::Guard&);
/// Sizes behind a rounding or a choice are checked once for each choice of numbers that comes, where that can be done. `now`: of this call.
void add_size_check(Plan&, const PlanSymbols&, const ir::Graph&, const std::vector<int64_t>& now);

/// Integers of recipes stand after the outputs while recordings are compared: so they become expressions as everything else does.
void append_integers(const Plan&, ir::Graph&);
/// Takes them off again; those that are expressions are computed at each call. False where one names another symbol.
bool take_integers(Plan&, const PlanSymbols&, ir::Graph&);
void append_floats(const Plan&, std::vector<double>& kept);
/// The guard of the floats, and the floats that are computed at each call. False where one names another symbol.
bool take_floats(Plan&, const PlanSymbols&, const symbolic::NumberProgram&);

}  // namespace cutaway::frames
