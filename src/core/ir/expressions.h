// Walks of the expressions over symbols in a graph's arguments: what is asked of symbols is asked of every part of every one of them.
// A header of its own, since only a few files ask.
#pragma once
#include <set>
#include <string>

#include "core/ir/argument.h"

namespace cutaway::ir {

/// Calls f(argument) for every argument inside that holds no others, in order. Constness follows the argument's; f may replace what it is given.
template <class A, class F> void for_each_leaf(A& a, F&& f) {
  if (auto* l = a.template as<List>()) for (auto& x : l->items) for_each_leaf(x, f);
  else if (auto* t = a.template as<Tuple>()) for (auto& x : t->items) for_each_leaf(x, f);
  else if (auto* s = a.template as<Slice>()) for (auto& x : s->parts) for_each_leaf(x, f);
  else if (auto* d = a.template as<Dict>()) for (auto& x : d->items) for_each_leaf(x.second, f);
  else f(a);
}

/// Calls f(const SymExpr&) for an expression and for all of its parts, the whole before its parts.
template <class F> void for_each_expression(const SymExpr& e, F&& f) {
  f(e);
  for (const auto& operand : e.operands) for_each_expression(*operand, f);
}
template <class F> void for_each_expression(const Dim& d, F&& f) {
  if (d.is_symbolic()) for_each_expression(*d.expr(), f);
}
template <class F> void for_each_expression(const Argument& a, F&& f) {
  for_each_leaf(a, [&](const Argument& leaf) {
    if (const auto* d = leaf.as<Dim>()) for_each_expression(*d, f);
  });
}

/// The names of the symbols in an expression, a size or an argument.
template <class T> void collect_symbols(const T& in, std::set<std::string>& names) {
  for_each_expression(in, [&](const SymExpr& e) { if (e.kind == SymExpr::Kind::symbol) names.insert(e.symbol); });
}

}  // namespace cutaway::ir
