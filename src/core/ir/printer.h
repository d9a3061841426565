// The printer behind print(), which can also tell where each thing went: verify() points into the text with it.
// Not for use outside core/ir.
#pragma once
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/text.h"

namespace cutaway::ir {

/// A stretch of printed text, in bytes.
struct Span {
  size_t offset = 0;
  size_t length = 0;
};
/// By the address of what was printed: a Node (its target), an Argument, a Block (its outputs), a ValueId inside `results` or an
/// Input (with its type), a keyword's std::string.
using Spans = std::unordered_map<const void*, Span>;

/// Appends the text of `graph` to `out`; records spans when asked to.
void print_to(std::string& out, const Graph& graph, const PrintOptions& options, Spans* spans = nullptr);

/// The same with the header, without the graph's name and locations, and with values named by `ordinals[id]`.
void print_canonical_to(std::string& out, const Graph& graph, const std::vector<ValueId>& ordinals);

/// A node's line without its region, and a list of arguments, with values named by `ordinals[id]`.
void write_node_head(std::string& out, const Graph& graph, const Node&, const std::vector<ValueId>& ordinals);
void write_arguments(std::string& out, const Graph& graph, const std::vector<Argument>&, const std::vector<ValueId>& ordinals);

/// " no_grad autocast(cpu, bf16)": what a region's state adds to a line.
void write_state(std::string& out, const RegionState&);
/// `model.py:12 Net.forward in encoder.layer.0`, without the "#".
void write_location(std::string& out, const Location&);

}  // namespace cutaway::ir
