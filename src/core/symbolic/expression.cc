#include "core/symbolic/expression.h"

#include <algorithm>
#include <array>

#include "core/ir/expressions.h"

namespace cutaway::symbolic {

using Kind = ir::SymExpr::Kind;

std::optional<int64_t> floor_div(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::optional<int64_t> modulo(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;   // INT64_MIN % -1 is undefined in C++
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

namespace {

constexpr size_t kInlineDepth = 32;

/// One step. None on overflow and on division by zero.
std::optional<int64_t> apply(Kind kind, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (kind) {
    case Kind::add: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Kind::mul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Kind::floor_div: return floor_div(a, b);
    case Kind::mod: return modulo(a, b);
    case Kind::min: return std::min(a, b);
    case Kind::max: return std::max(a, b);
    case Kind::constant: case Kind::symbol: break;
  }
  return std::nullopt;
}

}  // namespace

ir::Dim compose(Kind kind, const std::vector<ir::Dim>& operands) {
  auto e = std::make_shared<ir::SymExpr>();
  e->kind = kind;
  for (const ir::Dim& d : operands) {
    if (d.is_symbolic()) { e->operands.push_back(d.expr()); continue; }
    auto number = std::make_shared<ir::SymExpr>();
    number->constant = d.value();
    e->operands.push_back(std::move(number));
  }
  return ir::Dim(std::shared_ptr<const ir::SymExpr>(std::move(e)));
}

bool Expression::add(const ir::SymExpr& e, std::span<const std::string> names, size_t depth) {
  depth_ = std::max(depth_, depth + 1);
  if (e.kind == Kind::constant) { steps_.push_back({e.kind, e.constant}); return true; }
  if (e.kind == Kind::symbol) {
    const auto found = std::ranges::find(names, e.symbol);
    steps_.push_back({e.kind, found - names.begin()});
    return found != names.end();
  }
  for (size_t i = 0; i < e.operands.size(); ++i)
    if (!add(*e.operands[i], names, depth + i)) return false;
  steps_.push_back({e.kind, static_cast<int64_t>(e.operands.size())});
  return true;
}

std::optional<Expression> Expression::make(const ir::Dim& d, std::span<const std::string> names) {
  Expression out;
  if (!d.is_symbolic()) {
    out.number_ = d.value();
    return out;
  }
  if (!out.add(*d.expr(), names, 0)) return std::nullopt;
  out.is_symbol_ = d.expr()->kind == Kind::symbol;
  if (out.is_symbol_) out.number_ = out.steps_.front().number;
  return out;
}

std::optional<int64_t> Expression::run(std::span<const int64_t> numbers) const {
  std::array<int64_t, kInlineDepth> near;
  std::vector<int64_t> far(depth_ > near.size() ? depth_ : 0);
  int64_t* const stack = far.empty() ? near.data() : far.data();
  size_t top = 0;
  for (const Step& s : steps_) {
    if (s.kind == Kind::constant) { stack[top++] = s.number; continue; }
    if (s.kind == Kind::symbol) { stack[top++] = numbers[static_cast<size_t>(s.number)]; continue; }
    top -= static_cast<size_t>(s.number);
    for (int64_t i = 1; i < s.number; ++i) {
      const auto result = apply(s.kind, stack[top], stack[top + static_cast<size_t>(i)]);
      if (!result) return std::nullopt;
      stack[top] = *result;
    }
    ++top;
  }
  return stack[0];
}

SymbolValues::SymbolValues(std::initializer_list<std::pair<std::string, int64_t>> values) {
  for (const auto& [name, number] : values) set(name, number);
}

std::optional<int64_t> SymbolValues::find(std::string_view name) const {
  const auto all = names();
  const auto found = std::ranges::find(all, name);
  return found == all.end() ? std::nullopt : std::optional(numbers_[static_cast<size_t>(found - all.begin())]);
}

void SymbolValues::set(const std::string& name, int64_t number) {
  const auto all = names();
  if (const auto found = std::ranges::find(all, name); found != all.end()) {
    numbers_[static_cast<size_t>(found - all.begin())] = number;
    return;
  }
  auto more = std::make_shared<std::vector<std::string>>(all.begin(), all.end());
  more->push_back(name);
  names_ = std::move(more);
  numbers_.push_back(number);
}

bool SymbolValues::operator==(const SymbolValues& o) const { return std::ranges::equal(names(), o.names()) && numbers_ == o.numbers_; }

base::Result<int64_t> evaluate(const ir::Dim& d, const SymbolValues& values) {
  if (!d.is_symbolic()) return d.value();
  const auto e = Expression::make(d, values.names());
  if (!e) {
    std::string unknown;
    ir::for_each_expression(d, [&](const ir::SymExpr& part) { if (part.kind == Kind::symbol && unknown.empty() && !values.find(part.symbol)) unknown = part.symbol; });
    return base::Error{.what = "the symbol " + unknown + " has no value"};
  }
  if (const auto n = e->at(values.numbers())) return *n;
  return base::Error{.what = "the size " + d.text() + " divides by zero or does not fit into 64 bits"};
}

namespace {

base::Status settle_argument(ir::Argument& a, const SymbolValues& values) {
  base::Status status;
  ir::for_each_leaf(a, [&](ir::Argument& leaf) {
    const auto* d = leaf.as<ir::Dim>();
    if (!d || !status.ok()) return;
    if (auto n = evaluate(*d, values); n.ok()) leaf = ir::Argument(*n);
    else status = std::move(n).error();
  });
  return status;
}

}  // namespace

base::Status settle(ir::Block& block, const SymbolValues& values) {
  for (ir::Node& n : block.nodes) {
    for (auto& a : n.args) CUTAWAY_TRY(settle_argument(a, values));
    for (auto& [name, a] : n.kwargs) CUTAWAY_TRY(settle_argument(a, values));
    for (auto& r : n.regions) CUTAWAY_TRY(settle(r, values));
  }
  for (auto& a : block.outputs) CUTAWAY_TRY(settle_argument(a, values));
  return {};
}

base::Result<ir::Graph> at_sizes(const ir::Graph& graph, const SymbolValues& values) {
  ir::Graph g = graph;
  for (ir::Value& v : g.values)
    if (v.type.is_tensor())
      for (auto* dims : {&v.type.tensor.sizes, &v.type.tensor.strides})
        for (ir::Dim& d : *dims) {
          if (!d.is_symbolic()) continue;
          CUTAWAY_TRY_ASSIGN(d, evaluate(d, values));
        }
  CUTAWAY_TRY(settle(g.body, values));
  return g;
}

base::Result<std::vector<ir::Argument>> at_sizes(std::vector<ir::Argument> arguments, const SymbolValues& values) {
  for (ir::Argument& a : arguments) CUTAWAY_TRY(settle_argument(a, values));
  return arguments;
}

}  // namespace cutaway::symbolic
