// Plans of one frame at several sizes, compared: what a plan does besides its graph must not depend on sizes and numbers, but for integers and
// floats that recipes hold.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/frames/plan.h"

namespace cutaway::frames {

/// Integers that a recipe holds: of a number, or of a tuple of numbers. What differs between sizes in these alone becomes an expression.
std::optional<std::vector<int64_t>> integers_of(const Recipe&);
/// A float that a recipe holds: it must follow from the floats and sizes of inputs, as everything else.
bool is_float(const Recipe&);
bool same_plan(const Plan&, const Plan&);

}  // namespace cutaway::frames
