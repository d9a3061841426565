// Changes to graphs that the reducer and the compiler share. Each keeps a verified graph verified.
#pragma once
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/ir/graph.h"
#include "core/ir/verify.h"

namespace cutaway::ir {

/// True when the node must stay although nothing uses its results: it writes to an argument, draws random numbers that a
/// later node would otherwise draw, or has no results. By schema where one is known, else by torch's naming ("mul_", "….out").
/// Operators that update running statistics against their own schemas (batch_norm in training) are known by name.
bool has_effects(const Node&, const SchemaTable* = nullptr);

/// Removes nodes without effects whose results are unused, to a fixed point in one backward sweep. Returns how many.
/// Captured calls and scopes go or stay whole; dead nodes inside a region go too.
size_t remove_dead_code(Graph&, const SchemaTable* = nullptr);
/// Removes inputs that nothing uses; returns the positions (in the old order) of those that stay.
std::vector<size_t> remove_unused_inputs(Graph&);
/// Keeps only the outputs with these positions, in this order.
void keep_outputs(Graph&, const std::vector<size_t>& positions);
/// The value becomes an input (appended) and its definition loses it. The node that defined it is removed when it has no effects
/// and no other result of it is used; else it stays and defines an unused value in its place. Returns `id`, which is the new
/// input's value too, or kNoValue when no top-level node defines it. An input stays as it is.
ValueId replace_value_by_input(Graph&, ValueId id);
/// Every use of `from` becomes a use of `to`, which must be defined before them.
void replace_uses(Graph&, ValueId from, ValueId to);
/// The top-level nodes at `positions` as a graph of their own: values they need from outside become inputs, values used outside
/// (or by the graph's outputs) become outputs, in order of definition; inputs stand in order of first use and keep their kind. `lifted` and `produced` receive the ids in the old graph.
Graph extract_subgraph(const Graph&, const std::vector<size_t>& positions, std::vector<ValueId>* lifted = nullptr, std::vector<ValueId>* produced = nullptr);
/// The nodes up to and including position `last`, with all inputs; returns the values that the rest used (or, when none, all results of that node).
Graph prefix(const Graph&, size_t last);

/// Ids in the order of the text (a node's results before those of its region), unused values and locations gone. Names stay, or
/// become %0, %1, … by position.
enum class Names { keep, canonical };
void renumber(Graph&, Names);
/// The text form with its header, values named by position, without the graph's name and locations.
std::string canonical_text(const Graph&);
/// Digest of the meaning: of canonical_text(). Independent of value names, graph name and locations; dependent on everything else.
base::Digest digest(const Graph&);

}  // namespace cutaway::ir
