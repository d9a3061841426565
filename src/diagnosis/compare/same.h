// Are two tensors the same? The rules of torch's `same` as a contract, with a verdict that keeps the evidence.
// One pass over memory, parallel, no temporaries, any mix of dtypes, strided inputs. docs/notes/same.md has the rules,
// and where we depart from torch. Nested values are same_values.h.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "diagnosis/compare/verdict.h"

namespace cutaway::compare {

struct Options {
  bool cos_similarity = false;
  double tol = 1e-4;   ///< both absolute and relative; at least 0
  bool equal_nan = false;
  bool exact_dtype = true;
  bool relax_numpy_equality = false;   ///< for callers with numpy values
  bool ignore_non_fp = false;
  bool use_larger_multiplier_for_smaller_tensor = false;
  bool force_max_multiplier = false;
  bool use_iou_for_bool = false;
  double iou_threshold = 0.99;
  bool exact_shape = false;   ///< off, shapes that broadcast are compared so, as torch does; on, another shape is wrong
};

/// One pair of tensors. `fp64_reference` undefined means the reference itself. Fake, meta, quantized and nested tensors are
/// refused by name. Uses as many threads as torch does; may be called without the GIL; never throws for a kind of tensor.
Verdict same_tensors(const at::Tensor& reference, const at::Tensor& result, const at::Tensor& fp64_reference, const Options&, std::string path = {});

}  // namespace cutaway::compare
