// Runs one trial in this process: eager, fp64, the backend, the comparison. A worker calls it in a forked child.
#pragma once
#include <string>

#include "diagnosis/oracle/trial.h"

namespace cutaway::repro {

/// Never throws for what a candidate does; crashes and hangs are the caller's (a fork server's) business.
oracle::TrialResult run_trial(const oracle::Trial&);
/// The same over JSON: a worker's handler.
std::string handle_request(const std::string& body);
/// Loads what first use would load (operators, kernels, threads stay at one), so that children find it done.
void warm_up();

}  // namespace cutaway::repro
