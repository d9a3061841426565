// Are two tensors the same? By our rules, or by those of torch's `same` as a contract, with a verdict that keeps the evidence.
// One pass over memory, parallel, no temporaries, any mix of dtypes, strided inputs. docs/notes/same.md has the rules,
// and where we depart from torch. Nested values are same_values.h.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "diagnosis/compare/verdict.h"

namespace cutaway::compare {

/// Which rules decide. Torch's, to the letter, are for callers who ask for them by name. Common ones are torch's but for this: where an infinity or NaN of the
/// reference would make them pass whatever there is, errors are taken over the finite rest. Ours are those of every command: NaN and infinities are compared first and errors taken over the finite rest, no single element may be far off, integers must be equal
/// (where fp64 has them otherwise, it decides), shapes too.
enum class Rules : uint8_t { common, torch, cutaway };

struct Options {
  Rules rules = Rules::common;
  bool cos_similarity = false;
  double tol = 1e-4;   ///< both absolute and relative; at least 0
  bool equal_nan = false;     ///< ours: always
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
