// What eager does with a graph, under what a trial says around it: the judge that every task of a worker compares by.
#pragma once
#include <ATen/core/ivalue.h>

#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/exec/process_settings.h"
#include "core/exec/random_state.h"
#include "core/exec/region_state.h"
#include "core/ir/graph.h"
#include "diagnosis/compare/judge.h"
#include "diagnosis/oracle/trial.h"

namespace cutaway::repro {

using Values = std::vector<c10::IValue>;

/// What holds around every run of a trial, in torch's words.
struct Surroundings {
  std::map<std::string, std::string> process;
  exec::StateSetting state;                       ///< around the call
  std::optional<exec::StateSetting> backward;     ///< around the backward pass; none: as around the call
  exec::RandomStart random = 0;
};
/// The Error names what cannot be set here.
base::Result<Surroundings> prepare_surroundings(const bundle::Manifest&);
/// Sets them for its lifetime, but for what belongs to single runs.
class SurroundingsScope {
 public:
  explicit SurroundingsScope(const Surroundings& s) : process_(s.process), state_(s.state) {}

 private:
  exec::ProcessScope process_;
  exec::StateScope state_;
};

/// What a backend is told besides stage and options, for a graph that is `whole` or a part of it: what the manifest says, which inputs are
/// torch.nn.Parameters (only Python knows those), the default device.
std::map<std::string, std::string> extra_for_backend(const ir::Graph& graph, const bundle::Manifest&, const ir::Graph& whole);

enum class Passes { forward, forward_and_backward };
/// One run from the recorded random state; backward where the trial has one, under its own state.
exec::RunResults run_once(const oracle::Trial&, const Surroundings&, const exec::Runnable&, const Values& inputs, Passes = Passes::forward_and_backward);

struct ReferenceOptions {
  Passes passes = Passes::forward_and_backward;
  bool has_fp64 = true;
  bool sees_layout = true;   ///< where the trial's stage and backend let a user see it at all
};
/// By the trial's rules. `graph` may be a part of the trial's. Trial and surroundings must outlive it; setting them is the caller's. Throws what eager throws; the
/// Error: the graph cannot be prepared.
base::Result<std::shared_ptr<compare::Judge>> make_judge(const oracle::Trial&, const Surroundings&, const ir::Graph&, const Values& inputs, const ReferenceOptions& = {});

/// What a backend with a random generator of its own must be told to draw the numbers that eager draws, as options in JSON text. Empty: the graph draws none, the
/// manifest says so already, or nothing is known.
std::map<std::string, std::string> options_to_draw_as_eager(const ir::Graph&, const bundle::Manifest&);
/// What two verdicts of one bug have in common: what is off, and in which dtype.
bundle::FailureSignature signature_of(const compare::Verdict&);

}  // namespace cutaway::repro
