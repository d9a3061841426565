// CUTAWAY_CHECK's comparison: what a kernel or a graph computed against its operators and an fp64 run of them, by the rules of `same`. A difference leaves a bundle
// and raises.
#pragma once

namespace cutaway::repro {

/// Backends that check themselves compare by this from now on.
void install_checker();

}  // namespace cutaway::repro
