// Symbolic integers: equality and their text, which the parser reads back to the same tree.
#include <limits>

#include "core/ir/type.h"

namespace cutaway::ir {
namespace {

bool equal(const SymExpr& a, const SymExpr& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.constant != b.constant || a.symbol != b.symbol || a.operands.size() != b.operands.size()) return false;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (!equal(*a.operands[i], *b.operands[i])) return false;
  return true;
}

bool is_atom(const SymExpr& e) {
  using K = SymExpr::Kind;
  return e.kind == K::constant || e.kind == K::symbol || e.kind == K::min || e.kind == K::max || e.kind == K::mod;
}

// Parentheses stand wherever the tree differs from the flat reading: sums of atoms, products and quotients; products and
// quotients of atoms.
void write(std::string& out, const SymExpr& e) {
  using K = SymExpr::Kind;
  const auto operand = [&](const SymExpr& x, bool in_sum) {
    const bool bare = is_atom(x) || (in_sum && (x.kind == K::mul || x.kind == K::floor_div));
    if (!bare) out += '(';
    write(out, x);
    if (!bare) out += ')';
  };
  const auto join = [&](std::string_view separator, bool in_sum) {
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (i) out += separator;
      operand(*e.operands[i], in_sum);
    }
  };
  const auto call = [&](std::string_view name) {
    out += name;
    out += '(';
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (i) out += ", ";
      write(out, *e.operands[i]);
    }
    out += ')';
  };
  switch (e.kind) {
    case K::constant: out += std::to_string(e.constant); return;
    case K::symbol: out += e.symbol; return;
    case K::add: join(" + ", true); return;
    case K::mul: join("*", false); return;
    case K::floor_div: join("//", false); return;
    case K::mod: call("mod"); return;
    case K::min: call("min"); return;
    case K::max: call("max"); return;
  }
}

}  // namespace

Dim::Dim(std::shared_ptr<const SymExpr> expr) {
  assert(expr && "a symbolic size needs an expression");
  // A constant is a number and nothing else, so that equality has one form to compare.
  if (expr->kind == SymExpr::Kind::constant) value_ = expr->constant;
  else expr_ = std::move(expr);
}

Dim Dim::symbol(std::string name) {
  auto e = std::make_shared<SymExpr>();
  e->kind = SymExpr::Kind::symbol;
  e->symbol = std::move(name);
  return Dim(std::shared_ptr<const SymExpr>(std::move(e)));
}

bool Dim::operator==(const Dim& o) const {
  if (!expr_ || !o.expr_) return !expr_ && !o.expr_ && value_ == o.value_;
  return equal(*expr_, *o.expr_);
}

std::string Dim::text() const {
  if (!expr_) return std::to_string(value_);
  std::string out;
  write(out, *expr_);
  return out;
}

}  // namespace cutaway::ir
