// Numbers that only data knows: what item() gives, the sizes of nonzero() and of x[mask]. A recording that keeps them (RecordOptions::keeps_numbers)
// goes on behind them: such a number is a value of the graph, and Python gets it as a SymInt, SymFloat or SymBool that answers no question.
// Its sizes are found by trying: each unknown number is several numbers at once, one a *world*, and an operator that is given one, or a tensor whose
// sizes follow from one, runs on fakes in every world. What comes out the same in all of them is known; what does not is unknown as well. A world in
// which the operator raises says nothing more of its results. Internal to core/trace.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/SymNodeImpl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/trace/unknown_number.h"

namespace cutaway::trace {

/// Of a fake tensor whose sizes differ between worlds. The tensor that the program has is that of world `own`.
struct UnknownSizes {
  std::array<at::Tensor, kWorlds> worlds;    ///< undefined: for the own one, and where an operator before raised
  size_t own = 0;
  std::vector<c10::SymInt> sizes, strides;
  c10::SymInt numel;
};

/// While one lives on this thread, fakes tell their sizes as they are in their own world. Nobody but the recorder and what runs below it may ask.
class SizesShown {
 public:
  SizesShown() { ++depth(); }
  ~SizesShown() { --depth(); }
  SizesShown(const SizesShown&) = delete;
  SizesShown& operator=(const SizesShown&) = delete;
  static bool are() { return depth() > 0; }

 private:
  static int& depth();
};

/// The unknown numbers that a recording has met. The same mask has the same number of true elements.
struct UnknownCounts {
  size_t next = 0;
  std::unordered_map<const c10::TensorImpl*, std::pair<uint32_t, size_t>> by_tensor;   ///< its version, and the number
};

/// While one lives on this thread, operators whose results have sizes that data decides give results of the sizes of this world.
class WorldRun {
 public:
  /// `arguments`: of the operator that is recorded; they outlive it.
  WorldRun(UnknownCounts& counts, size_t world, std::vector<const c10::TensorImpl*> arguments);
  ~WorldRun();
  WorldRun(const WorldRun&) = delete;
  WorldRun& operator=(const WorldRun&) = delete;
  static WorldRun* current();
  /// A size that the values of `of` decide: how many of its elements are true, or anything else.
  int64_t size_by(const at::Tensor& of, bool is_count_of_true);
  size_t met() const { return met_; }   ///< sizes so far: the same in all worlds

 private:
  UnknownCounts& counts_;
  size_t world_, met_ = 0;
  std::vector<const c10::TensorImpl*> arguments_;
  WorldRun* before_;
};

/// An unknown number's stand-in in a world; number `index` of the recording.
c10::IValue stand_in(UnknownNumber::Kind, size_t index, size_t world);

}  // namespace cutaway::trace
