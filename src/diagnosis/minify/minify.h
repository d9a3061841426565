// Cutting a failing case down to the smallest one that still fails the same way. The engine asks an Oracle and knows no tensors.
// Main types: Case (what is reduced), ReductionPass (a row of the table), Oracle, minify().
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/debug/events.h"
#include "core/ir/graph.h"
#include "core/ir/verify.h"

namespace cutaway::minify {

/// What is reduced: a graph, and the manifest with its inputs (by digest, seed or fill), state and options.
struct Case {
  ir::Graph graph;
  bundle::Manifest manifest;
};

/// The one order that says what "smaller" means, compared field by field: every accepted step goes down in it, so reduction ends.
struct Score {
  uint64_t nodes = 0;      ///< captured calls count as one
  uint64_t elements = 0;   ///< of all tensor inputs together
  uint64_t inputs = 0, outputs = 0;
  uint64_t data = 0;       ///< how far inputs are from plain: recorded data 4, random 3, small integers 2, one value 1, zeros 0; odd dtypes and strides add
  uint64_t state = 0;      ///< grad, autocast, options, gradients asked for, symbolic sizes
  uint64_t text = 0;       ///< characters of the printed nodes: simpler literals are shorter
  auto operator<=>(const Score&) const = default;
};
Score score(const Case&);
/// Names the meaning of a case: graph digest, inputs, state, options. Equal digests are never asked twice.
base::Digest digest(const Case&);

struct Answer {
  enum class Kind : uint8_t { same_failure, other_failure, passes, invalid };
  Kind kind = Kind::invalid;
  std::string reason;
  bundle::FailureSignature signature;   ///< of a failure
  bool is_certain = true;               ///< false: a time-out under load, to be repeated alone
};
/// "Does it still fail the same way?" Answers come in the order of the questions. Called from one thread.
struct Oracle {
  virtual ~Oracle() = default;
  virtual std::vector<Answer> ask(std::span<const Case* const>) = 0;
};
/// Recomputes every type from the inputs' types; fails when a shape does not fit.
struct Typer {
  virtual ~Typer() = default;
  virtual base::Result<ir::Graph> retype(const ir::Graph&) = 0;
};
/// Values of the unreduced graph as eager computed them, by value name: what a removed node's users get instead.
struct RecordedValues {
  virtual ~RecordedValues() = default;
  virtual std::optional<bundle::InputRef> find(std::string_view value_name) = 0;
};

/// Asked by a pass for each candidate, in a fixed order; on a dry run it only counts.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual bool keep() = 0;
};
/// What passes may consult besides the case.
struct PassContext {
  RecordedValues* values = nullptr;
  const ir::SchemaTable* schemas = nullptr;
};
struct ReductionPass {
  std::string_view name;
  /// Asks keep() for each candidate in a fixed order and removes those that are not kept. Deterministic; asks the same number of times
  /// whatever the answers are.
  void (*apply)(Chooser&, Case&, const PassContext&);
  std::string_view summary;
  /// subset: any candidates may go (delta debugging). prefix: the first n candidates go, n found by bisection.
  enum class Search : uint8_t { subset, prefix } search = Search::subset;
  bool retypes = false;   ///< changes input types: the Typer recomputes the rest before the Oracle is asked
};
/// Every pass, in the order in which they run.
std::span<const ReductionPass> passes();

struct Progress {
  std::string_view pass;
  Score start, best;
  uint64_t asked = 0, repeated = 0;
  double seconds = 0;
  int64_t new_kernels = 0;   ///< built by the backend so far; filled in by the caller of the engine, where it knows
};
/// A failure that is not the one we look for, kept aside.
struct OtherFailure { Case example; bundle::FailureSignature signature; uint64_t count = 0; };

struct Options {
  int jobs = 1;                              ///< candidates asked at once; the result is the same for every value
  std::vector<std::string> only_passes;      ///< empty: all
  double time_budget_s = 0;                  ///< 0: none
  uint64_t repeats = 1;                      ///< how often "passes" must be seen before it counts, for flaky failures
  std::string journal;                       ///< path; empty: none. An existing one with the same start is continued.
  std::string question;                      ///< what the Oracle is asked (backend, comparison, wanted failure): a journal of another one is refused
  std::vector<std::pair<base::Digest, Answer>> known;   ///< answers that the caller has already, so that they are not asked again
  std::function<bool(const Progress&)> on_progress;   ///< false stops; the best so far is the answer
  debug::Sink* sink = nullptr;
};
/// First guesses: cases tried before any pass, smallest first (an operator that the exception names, one of each distinct operator).
using Guesses = std::vector<Case>;

struct Outcome {
  Case smallest;
  bool start_fails = false;                  ///< false: the unreduced case did not fail the same way; nothing was done
  Answer start;
  bool one_minimal = false;                  ///< every single removal was tried and no longer fails
  bool stopped_early = false;
  uint64_t candidates = 0, cached = 0;
  std::vector<std::pair<std::string, uint64_t>> single_removals;   ///< pass, how many single candidates of the final sweep no longer fail
  std::vector<OtherFailure> others;
  double seconds = 0;
};
base::Result<Outcome> minify(Case start, const Guesses&, Oracle&, Typer&, RecordedValues&, const ir::SchemaTable*, const Options&);

}  // namespace cutaway::minify
