// Convolutions on a card in the layout that its libraries compute in: channels last.
#pragma once
#include <vector>

#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {

/// Where several convolutions follow each other, images go through them, and through what is computed element by element or in pools between them, with their channels last.
/// Weights and first images are laid out anew in each run; what the graph returns lies as it did. Not done where too much between them needs images as they were.
void lay_out_convolutions(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);

}  // namespace cutaway::codegen
