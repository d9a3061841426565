// Sizes of a whole case at once, for inputs that are too large to search with.
#pragma once
#include <cstdint>

#include "diagnosis/minify/minify.h"

namespace cutaway::minify {

/// Bytes that the inputs show, not those of the storages behind them.
uint64_t bytes_shown(const Case&);

enum class Part { begin, end };
/// Every size above `most` comes down to it, or to a little more, so that different sizes stay different; of the data the begin or the end is kept.
/// The types of the graph's own values are not recomputed.
void cap_sizes(Case&, int64_t most, Part);
/// Every size above `factor` is divided by it, so that what stands in a relation goes on doing so.
void divide_sizes(Case&, int64_t factor, Part);

}  // namespace cutaway::minify
