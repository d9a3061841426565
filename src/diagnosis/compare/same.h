// Are two results the same? The rules of torch's `same` as a contract, with a verdict that keeps the evidence.
// One pass over memory, parallel, no temporaries, any mix of dtypes, strided inputs. (FEATURES.md section 8.)
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutaway::compare {

/// Ordered from best to worst.
enum class Outcome : uint8_t {
  equal, last_bit, within_tolerance, closer_to_fp64, ill_conditioned, nondeterministic, wrong, raised, refused
};
std::string_view outcome_name(Outcome);
inline bool is_same(Outcome o) { return o < Outcome::nondeterministic; }

struct Options {
  bool cos_similarity = false;
  double tol = 1e-4;
  bool equal_nan = false;
  bool exact_dtype = true;
  bool relax_numpy_equality = false;
  bool ignore_non_fp = false;
  bool use_larger_multiplier_for_smaller_tensor = false;
  bool force_max_multiplier = false;
  bool use_iou_for_bool = false;
  double iou_threshold = 0.99;
};

/// What one pass over a pair of tensors found.
struct TensorStats {
  int64_t elements = 0, unequal = 0;
  double max_abs = 0, max_rel = 0;
  double rmse_result = 0, rmse_reference = 0;   ///< to fp64; NaN when there is none
  std::vector<int64_t> worst_index;
  double worst_reference = 0, worst_result = 0;
  int64_t nan_reference = 0, nan_result = 0, inf_reference = 0, inf_result = 0;
  double cosine = 1;
};

/// The verdict on one leaf of a nested result, or on the whole (the worst leaf).
struct Verdict {
  Outcome outcome = Outcome::equal;
  std::string path;      ///< "out.logits[3]"
  std::string reason;    ///< one sentence with the rule and the numbers that decided
  std::optional<TensorStats> stats;
  std::vector<Verdict> parts;   ///< every leaf that is not equal, for the whole
  explicit operator bool() const { return is_same(outcome); }
  /// One readable block.
  std::string text() const;
  std::string to_json() const;
};

/// One pair of tensors. `fp64_reference` undefined means the reference itself. Fake tensors are refused.
Verdict same_tensors(const at::Tensor& reference, const at::Tensor& result, const at::Tensor& fp64_reference, const Options&, std::string path = {});

}  // namespace cutaway::compare
