// Which of torch's kernels for attention a card runs.
#pragma once
#include <vector>

#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {

/// cuDNN's attention without a mask, without random numbers, and whose output alone is wanted, becomes the flash kernel where rows are few: cuDNN's clears memory before
/// each call, and the card waits for that.
void choose_attention(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);

}  // namespace cutaway::codegen
