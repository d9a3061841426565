// The error along the graph as an inline SVG plot: logarithmic, local and cumulative error of each node in program order.
#pragma once
#include <string>
#include <vector>

#include "diagnosis/report/evidence.h"

namespace cutaway::report {

/// `width` in pixels: a page holds one for wide and one for narrow screens, because text in a scaled picture would be too small to read.
/// `id` makes the identifiers inside unique. Zero has a lane of its own below the scale, and what is not finite one above it.
std::string plot_errors(const std::vector<AnalysisRow>&, double width, const std::string& id);

}  // namespace cutaway::report
