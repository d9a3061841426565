// Least squares.
#include <cstdint>

#include <ATen/ATen.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace {

bool are_lstsq_shapes_known(const at::Tensor& a, const std::optional<std::string_view>& driver) {
  if (!a.device().is_cpu() || a.dim() < 2) return false;
  const bool finds_ranks = driver && (*driver == "gelss" || *driver == "gelsd");
  return !finds_ranks || a.size(-2) <= a.size(-1);
}

namespace detail {
namespace {

using at::Tensor;

// Solutions lie in columns as long as the longer side of the matrices, as LAPACK leaves them.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b, std::optional<double>, std::optional<std::string_view> driver) {
  TORCH_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype ", a.scalar_type(), " and other's dtype ", b.scalar_type());
  const int64_t short_by = a.dim() - b.dim();
  TORCH_CHECK(short_by == 0 || short_by == 1, "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const bool is_vector = short_by == 1;
  const int64_t m = a.size(-2), n = a.size(-1), columns = is_vector ? 1 : b.size(-1);
  TORCH_CHECK((is_vector ? b.size(-1) : b.size(-2)) == m, "torch.linalg.lstsq: input.size(-2) should match other.size(", is_vector ? "-1)" : "-2)");
  const auto own_batch = a.sizes().slice(0, a.dim() - 2);
  const auto batch = at::infer_size(own_batch, b.sizes().slice(0, b.dim() - (is_vector ? 1 : 2)));

  const int64_t rows = std::max<int64_t>(std::max(m, n), 1);
  Sizes sizes{at::IntArrayRef(batch)}, strides(batch.size(), 0);
  int64_t step = rows * std::max<int64_t>(columns, 1);
  for (size_t i = batch.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(batch[i], 1);
  }
  sizes.push_back(n);
  strides.push_back(1);
  Sizes residuals{0};
  const bool has_residuals = driver && *driver == "gels" && m > n;
  if (has_residuals) {
    residuals = Sizes(at::IntArrayRef(batch));
    residuals.push_back(columns);
  }
  if (!is_vector) {
    sizes.push_back(columns);
    strides.push_back(rows);
  }
  Sizes ranks{0}, singular{0};
  if (!driver || *driver != "gels") ranks = Sizes(own_batch);
  if (driver && (*driver == "gelss" || *driver == "gelsd")) {
    singular = Sizes(own_batch);
    singular.push_back(std::min(m, n));
  }
  const auto real = c10::toRealValueType(a.scalar_type());
  return {make_meta(a.scalar_type(), sizes, strides), contiguous_meta(real, residuals), contiguous_meta(at::kLong, ranks), contiguous_meta(real, singular)};
}

}  // namespace

void add_linear_algebra_rules(KernelTable& t) { CUTAWAY_SHAPE_RULE(t, linalg_lstsq, lstsq); }

}  // namespace detail
}  // namespace cutaway::trace
