// First guesses for a reduction: small cases that are likely to show the failure, so that a search over the whole graph is rarely needed.
#pragma once
#include <string>

#include "diagnosis/minify/minify.h"

namespace cutaway::flows {

/// Smallest first. When `op` is known (the exception named it): each distinct use of it alone. Always: one node of every distinct kind
/// (operator, argument types, literals) fed with recorded values, all of them together, then by halves down to one: a fault in one operator is
/// found in about log2(kinds) questions, however large the graph.
minify::Guesses make_guesses(const minify::Case&, minify::RecordedValues&, const std::string& op);

}  // namespace cutaway::flows
