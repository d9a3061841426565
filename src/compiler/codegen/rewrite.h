// Rewrites of the graph before it is fused: operators that are several loops become operators that are one. Each is a row of a table with a name.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::codegen {

struct RewriteOptions {
  std::set<std::string, std::less<>> off;   ///< names of rows that are not used
  int64_t fuel = INT64_MAX;                 ///< rewrites that may be done
  bool has_tf32_convolutions = false;       ///< float32 convolutions may round their operands: the process allows it
};
/// One rewrite that was done: the row, and the value that it made anew.
struct Rewritten { std::string_view row; std::string value; };
std::vector<Rewritten> rewrite(ir::Graph&, const RewriteOptions& = {});
/// The table: name of the row, operator.
std::vector<std::pair<std::string_view, std::string_view>> all_rewrites();

}  // namespace cutaway::codegen
