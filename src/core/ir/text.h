// The text form of a graph (.cut): prints as a program, reads back identical. docs/formats/graph.md is its document.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::ir {

inline constexpr int kGraphFormatVersion = 1;

struct PrintOptions {
  bool header = false;      ///< first line "cutaway graph 1", as files have it
  bool types = true;        ///< types of results (inputs always have theirs)
  bool locations = true;
  bool regions = true;      ///< false: a captured call is one line
};
std::string print(const Graph&, const PrintOptions& = {});
std::string print_argument(const Graph&, const Argument&);
/// One node on one line, without its regions.
std::string print_node(const Graph&, const Node&);

/// Reads one graph. `file` is only for messages. Every error has place "file:line:column", the line and a caret.
/// Limits guard against hostile text: nesting 64 deep, and no allocation larger than the text itself justifies.
base::Result<Graph> parse(std::string_view text, std::string_view file = "<text>");

}  // namespace cutaway::ir
