// Sizes between a Python backend and us: nested tuples, as python/cutaway/_sizes.py has them.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "core/ir/graph.h"
#include "core/symbolic/guard.h"

namespace cutaway::composition {

/// An expression as a tuple, and back: a number, the name of a symbol, or (operation, operand, operand, …).
nanobind::object tuple_of_size(const ir::Dim&);
ir::Dim size_of_tuple(nanobind::handle);
/// Of each input; None for a graph without symbols.
nanobind::object sizes_of_inputs(const ir::Graph&);
/// What a backend took for granted: a list of (sign, left, right).
std::shared_ptr<const std::vector<symbolic::Guard>> conditions_of(nanobind::handle list);

}  // namespace cutaway::composition
