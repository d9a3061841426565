// Sizes of a whole case at once, for inputs that are too large to search with.
#pragma once
#include <cstdint>
#include <string>

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

/// The input no longer has recorded data: it is drawn by a seed made of its position.
void make_seeded(bundle::InputRef&, size_t position, std::string reason);
/// Every size `from` becomes `to`, in inputs and in the numbers that follow sizes; an input that grows is seeded. The types of the graph's own values are not recomputed. An Error
/// where an input of that size shares its memory with another one.
base::Status set_size(Case&, int64_t from, int64_t to);

}  // namespace cutaway::minify
