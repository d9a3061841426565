// How graphs, verdicts and the answers of `explain` show themselves in a notebook: a part of somebody else's page, with the report's drawings and the
// report's colours, which touch nothing outside of it. No scripts. Everything that is not ours is escaped.
#pragma once
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/ir/graph.h"

namespace cutaway::report {

/// The picture, and the text to unfold; of a graph that is too large to be drawn the reason, and its text to unfold.
std::string graph_for_notebook(const ir::Graph&);
/// Of docs/formats/verdict.md: the outcome, the reason, and a table of the leaves that are not equal.
std::string verdict_for_notebook(const base::Json&);
/// Of ExplainOutput.to_json(): counts, breaks with the user's lines and what to do, recompiles, each graph to unfold.
std::string explain_for_notebook(const base::Json&);
/// A whole page, in a frame that runs nothing.
std::string page_for_notebook(std::string_view page);

}  // namespace cutaway::report
