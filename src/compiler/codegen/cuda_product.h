// Small float32 products on a card by a kernel of our own: libraries leave most of the card idle there.
#pragma once
#include <optional>
#include <string>

#include "compiler/codegen/emit_cuda.h"
#include "compiler/codegen/fuse.h"

namespace cutaway::codegen {

/// Its kernel has buffers and a device, and no terms. `key` is the same for products that can share the text.
struct CardProduct { Kernel kernel; CudaText text; std::string key; };
/// aten.mm, or aten.addmm with a row as its bias, whose right side is a transposed weight. None for the rest, which stays the library's.
std::optional<CardProduct> card_product_of(const ir::Graph&, const Origins&, const ir::Node&, std::string name);

}  // namespace cutaway::codegen
