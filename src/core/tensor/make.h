// Making tensors: random ones from metadata, clones that keep aliasing, copies in fp64.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/ir/graph.h"

namespace cutaway::tensor {

using Range = std::pair<int64_t, int64_t>;   ///< [first, second)

/// Random data with exactly this metadata (strides and offset included), bit for bit the same for the same seed on every machine.
/// Floating: near standard normal (see random.cc), or whole numbers in `range`; bool: fair; integers: in `range`, else 0 to 9; bits
/// and sub-byte types: random bytes. The whole storage is filled, so tensors that share one can share this one. Torch's own random state is not touched.
base::Result<at::Tensor> rand_strided(const bundle::TensorRecord&, uint64_t seed, std::optional<Range> range = std::nullopt, std::optional<at::Device> onto = std::nullopt);
/// The storage alone, on the record's device or `onto`.
base::Result<at::Storage> random_storage(const bundle::TensorRecord&, uint64_t seed, std::optional<Range> range = std::nullopt, std::optional<at::Device> onto = std::nullopt);
/// The range that keeps an integer input valid, from how the graph uses it (embedding, index_select, gather, …), also through
/// views, casts and the addition of a constant. None: not known.
std::optional<Range> index_range(const ir::Graph&, ir::ValueId input);

/// Clones that keep what torch's clone loses: strides, offset, tensors that share a storage, requires_grad, leafness (a non-leaf
/// gets a history that ends at it), gradients (by clone), conj and neg bits. Lists, tuples and dicts inside the values are followed;
/// one tensor met twice is one tensor again. Tensors without a storage of their own (sparse, quantized, nested, wrappers) are
/// cloned one by one.
std::vector<c10::IValue> clone_keeping_aliases(const std::vector<c10::IValue>&);

/// Clones (as above) in which every floating number is one of its two neighbours, which of them by the number itself and `round`: equal numbers stay
/// equal. Numbers that were chosen and not computed (few digits: 0, 1, 0.5) stay, and so do NaN, infinities and tensors without a storage of their own.
std::vector<c10::IValue> nudge_last_bits(const std::vector<c10::IValue>&, uint64_t round);

/// Floating tensors to f64 and complex to c128, aliases and strides kept among tensors of one precision; everything else as it is.
std::vector<c10::IValue> cast_to_fp64(const std::vector<c10::IValue>&);
/// The graph with floating types, and the dtype arguments inside it, at double precision; autocast is off. Where a graph leaves the
/// dtype to torch's default (a factory, an integer division) it is said; random numbers are drawn in their own precision, and
/// operators that have no meaning in f64 (a view of bits, quantization) run in theirs, with casts around them.
ir::Graph cast_to_fp64(const ir::Graph&);

}  // namespace cutaway::tensor
