// Making tensors: random ones from metadata, clones that keep aliasing, copies in fp64.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::tensor {

/// Random data with exactly this metadata (strides and offset included), the same for the same seed on every machine.
/// Floating: standard normal; bool: fair; integers: in `range` [first, second), else small non-negative numbers.
at::Tensor rand_strided(const bundle::TensorRecord&, uint64_t seed, std::optional<std::pair<int64_t, int64_t>> range = std::nullopt);
/// The range that keeps an integer input valid, from how the graph uses it (embedding, index_select, gather, …). None: not known.
std::optional<std::pair<int64_t, int64_t>> index_range(const ir::Graph&, ir::ValueId input);

/// Clones that keep what torch's clone loses: strides, offset, tensors that share a storage, requires_grad, leafness, gradients
/// (by clone), conj and neg bits. Lists and tuples inside the values are followed.
std::vector<c10::IValue> clone_keeping_aliases(const std::vector<c10::IValue>&);

/// Floating tensors to f64 and complex to c128, aliases and strides kept; everything else as it is.
std::vector<c10::IValue> cast_to_fp64(const std::vector<c10::IValue>&);
/// The graph with floating types, and the dtype arguments inside it, at double precision.
ir::Graph cast_to_fp64(const ir::Graph&);

}  // namespace cutaway::tensor
