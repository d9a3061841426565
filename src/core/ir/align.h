// The longest common subsequence of two sequences of numbers (Myers' O(ND) algorithm), for diffs of nodes and of lines.
// Not for use outside core/ir.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cutaway::ir {

/// Pairs (i, j) with a[i] == b[j], increasing in both. As many as possible, unless the two differ in more than a thousand places
/// between elements that occur once in each: then elements that occur once are matched first and the rest between them.
std::vector<std::pair<size_t, size_t>> align(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);

}  // namespace cutaway::ir
