// Where in a graph do a backend's numbers go wrong? Runs in a worker's child, like every trial.
//
// The whole graph is compared first. Then the error of every value in a run of the whole ("cumulative") points at a node, and that node
// alone, fed with eager's values, confirms it ("local"). Where that says nothing, wrong stretches are halved: the left half first, each half
// fed with eager's values, about 2 log2(n) compilations. Two halves that are both right hold a fault that needs nodes of both: its shortest
// stretch is found by moving the two ends. Every stretch that is named was measured and was wrong.
#pragma once
#include "diagnosis/oracle/trial.h"

namespace cutaway::repro {

/// Outcome failure (with the signature), pass, eager_fails or invalid; `analysis` is filled for the first two.
oracle::TrialResult analyze(const oracle::Trial&);

}  // namespace cutaway::repro
