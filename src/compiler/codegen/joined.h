// Products on a card that read the same rows become one product: it fills the card where each of them alone does not.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {

/// aten.mm, or aten.addmm, of the same left side by weights that are inputs of the graph: their weights are put one behind the other (aten.cat, see gathered.h), one
/// product is made, and the results are slices of its columns. Done where the time that it saves is more than that of the copy. No bit of a sum depends on it
/// but by the library's choice of a kernel.
void join_products(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);

/// Strides of a view's results when its base has other ones than before; none for what is no view of those known, or when no strides can say it.
std::optional<std::vector<std::vector<int64_t>>> strides_of_view(const ir::Graph&, const ir::Node&);

}  // namespace cutaway::codegen
