// Symbolic sizes: one graph for many sizes, out of recordings at a few. A program is recorded at the sizes that were asked for and at
// others near, small and far; integers that differ between the recordings become expressions over the symbols; one more recording
// checks them. What was needed for that to hold becomes a guard; a symbol for which it does not hold stays a number, with the reason.
// Main functions: search(), which chooses the sizes, and unify(), which makes one graph out of several.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/symbolic/guard.h"
#include "core/symbolic/number_table.h"

namespace cutaway::symbolic {

/// One recording at one choice of sizes.
struct Recording {
  ir::Graph graph;
  /// In the order of the graph's constant inputs. Equal numbers stand for equal tensors (trace::ConstantNumbers): they must not depend on the sizes.
  std::vector<size_t> constants;
  std::vector<Condition> conditions;   ///< in the order in which they were met
  std::vector<Computation> computations;   ///< likewise
  // Floats of the program's that change between calls.
  std::vector<double> floats;              ///< what each was in this recording
  std::vector<ir::ValueId> float_inputs;   ///< the graph's input of each
  std::vector<NumberStep> steps;           ///< in the order in which they were met
  std::vector<double> kept;                ///< floats outside of the graph that must be explained, too
  uint64_t work = 0;                       ///< operators that it met, those inside of others included; of a loop over a size it grows
};

struct SymbolicGraph {
  ir::Graph graph;                      ///< sizes, strides and integer arguments are numbers or expressions
  std::vector<Guard> guards;            ///< all must hold, or the graph is not the program's
  std::vector<Guard> together;          ///< symbols that only move together go by the name of one of them: their numbers must be equal
  struct Static { std::string name; int64_t value = 0; std::string because; };
  std::vector<Static> statics;          ///< symbols that stay numbers
  size_t recordings = 0;                ///< how many were made
  /// Some size or number is a rounding, a remainder, a minimum or a maximum: what follows from it was seen at a few numbers only.
  bool has_steps = false;
  NumberProgram numbers;                ///< of the recordings' floats
};

/// Records at values[i] for symbol i. An error means that the program does not take these sizes.
using RecordAt = std::function<base::Result<Recording>(const std::vector<int64_t>& values)>;

/// Fails only when the recording at the symbols' own values does. At most `most_recordings` are made; 0: 20 and 20 for each symbol.
base::Result<SymbolicGraph> search(const RecordAt&, std::vector<Symbol>, size_t most_recordings = 0);

/// Recordings of one program at several sizes; `values[k][i]` is the number of symbol i in recording k. Three or more.
struct Samples {
  std::vector<std::string> symbols;
  std::vector<std::vector<int64_t>> values;
  std::vector<const Recording*> recordings;
  std::vector<int64_t> steps;           ///< symbol i only takes values that differ by multiples of steps[i]; empty: 1
};
struct Unified {
  ir::Graph graph;                      ///< of the first recording, with expressions
  std::vector<Guard> guards;            ///< from the conditions
  NumberProgram numbers;                ///< of the recordings' floats
  /// Sizes at which one more recording would tell apart expressions that fit all the others.
  struct Request { size_t symbol = 0; int64_t value = 0; };
  std::vector<Request> requests;
  bool is_guessed = false;              ///< some expression is a rounding or a choice that nobody reported
};
/// Refuses, with the reason, recordings that differ in more than integers, and integers that no expression explains.
base::Result<Unified> unify(const Samples&);

}  // namespace cutaway::symbolic
