#include <algorithm>
#include <cstdint>
#include <numeric>

#include "diagnosis/compare/element_pass.h"

namespace cutaway::compare {

Layout plan_layout(const std::vector<int64_t>& sizes, std::vector<Operand*> operands) {
  Layout layout;
  for (int64_t s : sizes) layout.elements *= s;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) layout.dimension.push_back(static_cast<int>(d));   // a dimension of one element never moves
  // Stable, so that a contiguous tensor is walked in its own order; broadcast dimensions (stride 0) go by the other operand.
  const auto stride = [&](int d) {
    for (const Operand* o : operands)
      if (o->strides[d] != 0) return std::abs(o->strides[d]);
    return int64_t{0};
  };
  std::stable_sort(layout.dimension.begin(), layout.dimension.end(), [&](int x, int y) { return stride(x) > stride(y); });

  std::vector<std::vector<int64_t>> merged(operands.size());
  for (int d : layout.dimension) {
    layout.unmerged_sizes.push_back(sizes[d]);
    bool one_with_previous = !layout.sizes.empty();
    for (size_t k = 0; k < operands.size() && one_with_previous; ++k)
      one_with_previous = merged[k].back() == operands[k]->strides[d] * sizes[d];
    if (one_with_previous) layout.sizes.back() *= sizes[d];
    else layout.sizes.push_back(sizes[d]);
    for (size_t k = 0; k < operands.size(); ++k) {
      if (one_with_previous) merged[k].back() = operands[k]->strides[d];
      else merged[k].push_back(operands[k]->strides[d]);
    }
  }
  if (layout.sizes.empty()) {   // one element, or a 0-dim tensor
    layout.sizes.push_back(1);
    for (size_t k = 0; k < operands.size(); ++k) merged[k].push_back(size_of(operands[k]->stored));
  }
  for (size_t k = 0; k < operands.size(); ++k) operands[k]->strides = std::move(merged[k]);
  // The index has one place for every dimension of the tensor, those of one element included.
  layout.rank = static_cast<int>(sizes.size());
  return layout;
}

std::vector<int64_t> Layout::index_of(int64_t linear) const {
  std::vector<int64_t> index(rank, 0);
  for (size_t i = unmerged_sizes.size(); i-- > 0;) {
    index[dimension[i]] = linear % unmerged_sizes[i];
    linear /= unmerged_sizes[i];
  }
  return index;
}

}  // namespace cutaway::compare
