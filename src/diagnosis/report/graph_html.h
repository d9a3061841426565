// A graph on a page: its picture, and its text with marked lines. The report and notebooks show the same.
#pragma once
#include <string>

#include "diagnosis/report/draw_graph.h"

namespace cutaway::report {

/// The picture as a figure that scrolls by itself; where it is not drawn, the reason as a paragraph.
std::string picture_html(const ir::Graph&, const Marks&);
/// The text form, lines that define a marked value marked; what is beyond the limit of lines is counted.
std::string graph_text_html(const ir::Graph&, const Marks&);
/// A part that scrolls by itself, also by keyboard, so that the page never does sideways.
std::string scroll(const std::string& label, const std::string& inner);

}  // namespace cutaway::report
