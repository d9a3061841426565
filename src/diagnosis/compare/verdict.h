// The answer to "are these the same?": an outcome with its evidence, never a bare bool.
// Main type: Verdict, on one leaf of a nested result or on the whole. Prints as one block, and as JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::compare {

/// Ordered from best to worst; everything before `nondeterministic` counts as the same.
enum class Outcome : uint8_t {
  equal,              ///< every element is ==, or NaN on both sides where that passes
  last_bit,           ///< within tolerance, and no element is further off than the neighbouring number of its dtype
  within_tolerance,   ///< by the tolerance, by the cosine or by the overlap of masks, whichever was asked for
  closer_to_fp64,     ///< outside the tolerance, but no further from fp64 than the reference is
  ill_conditioned,    ///< outside the tolerance, and the reference itself is about as far from fp64, or as far from itself when its inputs move by a bit
  drawn_otherwise,    ///< differs, and no longer when the backend draws random numbers in eager's order
  ignored,            ///< differs, and the caller asked not to look (`ignore_non_fp`)
  nondeterministic,   ///< differs, and so do two runs of one side with the same random state
  wrong,
  raised,             ///< the compiled run raised: another failure than a wrong number
  refused,            ///< cannot be compared: a fake tensor, a type without a rule
};
std::string_view outcome_name(Outcome);
inline bool is_same(Outcome o) { return o < Outcome::nondeterministic; }

/// What a verdict is about. The names are part of a failure's signature.
enum class Aspect : uint8_t {
  values,      ///< numbers of the outputs
  gradients,   ///< numbers of the gradients of inputs
  inputs,      ///< numbers of the inputs after the run
  structure,   ///< how many outputs, of which kinds
  dtype, device, layout, shape,
  strides,     ///< where a user could see them: `is_contiguous()` answers otherwise
  aliasing,    ///< which outputs share memory with which inputs and with each other
  history,     ///< whether an output requires a gradient
};
std::string_view aspect_name(Aspect);

/// What one pass over a pair of tensors found.
struct TensorStats {
  std::string dtype;
  std::vector<int64_t> sizes;
  int64_t elements = 0;
  int64_t unequal = 0;      ///< not ==, and not NaN on both sides
  int64_t not_close = 0;    ///< outside the tolerance
  double max_abs = 0;       ///< over the elements where the difference is a number; by our rules, where both are finite
  double max_rel = 0;       ///< relative to |reference|, where that is not zero
  double rmse_result = 0, rmse_reference = 0;   ///< to fp64; NaN when there is none
  std::vector<int64_t> worst_index;             ///< empty when nothing differs, or for a scalar
  double worst_reference = 0, worst_result = 0;   ///< real parts, of complex tensors
  int64_t nan_reference = 0, nan_result = 0, inf_reference = 0, inf_result = 0;
  int64_t other_specials = 0;   ///< by our rules: places with NaN or an infinity that the other side has otherwise
  double cosine = 1;        ///< similarity of the two as vectors; NaN when one has NaN or infinities
};

/// The verdict on one leaf of a nested result, or on the whole (that of the worst leaf).
struct Verdict {
  Outcome outcome = Outcome::equal;
  Aspect aspect = Aspect::values;
  std::string path;      ///< "out.logits[3]"
  std::string reason;    ///< one sentence with the rule and the numbers that decided
  std::optional<TensorStats> stats;
  int64_t leaves = 1;           ///< how many leaves were compared
  std::vector<Verdict> parts;   ///< for the whole: every leaf that is not equal, worst first
  explicit operator bool() const { return is_same(outcome); }
  /// One readable block, without a newline at the end.
  std::string text() const;
  std::string to_json() const;
};

/// Collects leaves into the verdict on the whole.
class Gathering {
 public:
  void add(Verdict leaf);
  /// With no leaf at all (two empty lists): equal.
  Verdict finish(std::string root) &&;

 private:
  int64_t leaves_ = 0;
  std::vector<Verdict> unequal_;
};

}  // namespace cutaway::compare
