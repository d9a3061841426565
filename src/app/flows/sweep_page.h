// sweep.html: a table of cells, and each failure once with its minimal graph. No scripts, no network; links are relative to the sweep's folder.
#pragma once
#include <string>

#include "app/flows/sweep_flow.h"

namespace cutaway::flows {

std::string sweep_page(const SweepReport&);

}  // namespace cutaway::flows
