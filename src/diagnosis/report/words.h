// The facts of a report as sentences. Plain text: whoever puts them on a page escapes them.
#pragma once
#include <string>
#include <vector>

#include "diagnosis/report/draw_graph.h"
#include "diagnosis/report/report.h"

namespace cutaway::report {

/// The nodes to look at: the first wrong one of the analysis, else those whose operator the failure names.
Marks find_marks(const Subject&);
/// "RuntimeError in aten.relu", "Wrong numbers in aten.relu", "No failure is recorded".
std::string headline(const Subject&, const Marks&);
/// "with inductor, graph taken after aot".
std::string setting(const Subject&);
/// The user's line, or empty: as recorded, else of a marked node.
std::string source_line(const Subject&, const Marks&);
/// "model.py:23 Block.forward in encoder.layer.0", or empty.
std::string location_words(const ir::Graph&, ir::LocationId);

/// One sentence a fact: minimal or not, how often it failed, what it cost, what else was seen.
std::vector<std::string> certificate_words(const Certificate&);
/// A warning that comes before everything else, or empty.
std::string certificate_warning(const Certificate&);

/// What must hold around the run, one phrase each: "gradients off", "autocast to bf16 on cpu".
std::vector<std::string> state_words(const bundle::Manifest&);
/// Where an input's data comes from: "recorded data, 4.1 kB", "random, seed 3", "every element 0".
std::string input_words(const ir::Graph&, const bundle::InputRef&);

struct Step {
  std::string purpose, command;
};
/// What to do next, most useful first; run in the directory that holds the bundle.
std::vector<Step> next_steps(const Subject&, bool needs_trust);

}  // namespace cutaway::report
