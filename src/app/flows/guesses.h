// First guesses for a reduction: small cases that are likely to show the failure, so that a search over the whole graph is rarely needed.
#pragma once
#include <string>
#include <vector>

#include "diagnosis/minify/minify.h"

namespace cutaway::flows {

/// What is known of the place of a failure.
struct Hints {
  std::string op;                       ///< that the exception named, or analyze; also one inside captured calls
  std::vector<std::string> suspects;    ///< nodes of the kernel that failed, as fx names them
  bool is_hang = false;                 ///< then a case that passes is cheap, and one that fails costs the whole limit
};
/// Nodes of one kind have the same operator, argument types and literals. In this order:
/// - each kind of use of the named operator, alone;
/// - each kind among the suspects alone, the rarest in the graph first, where they are few; the suspects together;
/// - of a hang each kind alone, the rarest first: all of those that pass together take less than a search in which every other step hangs;
/// - one node of every kind, all together: a fault in one operator shows there however large the graph is.
/// Values that a node is fed with are the recorded ones.
minify::Guesses make_guesses(const minify::Case&, minify::RecordedValues&, const Hints&);

}  // namespace cutaway::flows
