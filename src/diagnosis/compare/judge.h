// Is a compiled run the same as eager's? The one rule of every command: level 4 of the wrapper, run, triage, minify and analyze ask here, and repro.py
// says the same in Python. docs/notes/same.md has the rule.
// Main type: Judge. It holds what eager does, and the fp64 run of it, and compares runs with that.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/forward_backward.h"
#include "diagnosis/compare/same.h"

namespace cutaway::compare {

struct JudgeRules {
  double tolerance = 1e-3;
  bool is_strict = false;      ///< any difference of numbers is a failure
  /// Strides of outputs, and what they share memory with, reach the user. Not so between ahead-of-time autograd and its compiler, nor for a compiler
  /// that writes its outputs to files.
  bool sees_layout = true;
  bool ignore_non_fp = false;  ///< integers and truth values are not looked at
};

/// A run of eager on some inputs. May throw.
using Eager = std::function<exec::RunResults(const std::vector<c10::IValue>& inputs)>;

/// Two runs, without asking how sure the first one is of its numbers. `names` are those of the inputs; may be empty.
Verdict compare_runs(const exec::RunResults& reference, const exec::RunResults& result, const exec::RunResults* fp64, const JudgeRules&, const std::vector<std::string>& names = {});

class Judge {
 public:
  /// Runs eager on `inputs` and throws what it throws. An `fp64` that throws is as none: not every program runs in double precision.
  Judge(Eager eager, const std::vector<c10::IValue>& inputs, const std::function<exec::RunResults()>& fp64, JudgeRules, std::vector<std::string> names = {});

  const exec::RunResults& eager() const { return eager_; }
  double eager_ms() const { return eager_ms_; }   ///< of that run alone
  /// Null: there is none.
  const exec::RunResults* fp64() const { return fp64_ ? &*fp64_ : nullptr; }
  const std::string& fp64_problem() const { return fp64_problem_; }
  const JudgeRules& rules() const { return rules_; }
  /// Eager once more, by the same rules: one that does not repeat itself cannot judge.
  Verdict repeat_eager() const;
  /// Where numbers are off, eager runs a few more times on inputs moved by one unit in the last place: a result that is no further from eager than eager
  /// from itself is ill-conditioned, not wrong.
  Verdict judge(const exec::RunResults& result) const;
  bool is_failure(const Verdict& v) const { return rules_.is_strict ? v.outcome != Outcome::equal : !is_same(v.outcome); }

 private:
  Verdict excuse(Verdict, const exec::RunResults& result) const;

  Eager run_;
  std::vector<c10::IValue> inputs_;
  JudgeRules rules_;
  std::vector<std::string> names_;
  exec::RunResults eager_;
  double eager_ms_ = 0;
  std::optional<exec::RunResults> fp64_;
  std::string fp64_problem_;
  /// How far one leaf is from another: numbers over the finite rest, and how many places differ where there is no distance.
  struct Distance {
    double rms = 0, largest = 0;
    int64_t places = 0;
    void raise_to(const Distance&);
  };
  static std::optional<Distance> distance(const c10::IValue& from, const c10::IValue& to, const JudgeRules&);
  const std::vector<Distance>& moves() const;
  mutable std::optional<std::vector<Distance>> moves_;   // by leaf, made when first needed
};

}  // namespace cutaway::compare
