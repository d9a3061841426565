#include "core/exec/symbols.h"

#include <cstdint>
#include <optional>
#include <set>

#include "core/ir/expressions.h"

namespace cutaway::exec {
namespace {

struct Linear { std::string symbol; int64_t factor, offset; };

/// factor * symbol + offset, when the expression is that with one symbol. An empty symbol means a constant (the offset).
std::optional<Linear> linear_form(const ir::SymExpr& e) {
  using Kind = ir::SymExpr::Kind;
  switch (e.kind) {
    case Kind::constant: return Linear{"", 0, e.constant};
    case Kind::symbol: return Linear{e.symbol, 1, 0};
    case Kind::add:
    case Kind::mul: {
      Linear total = e.kind == Kind::add ? Linear{"", 0, 0} : Linear{"", 0, 1};
      for (const auto& operand : e.operands) {
        auto part = linear_form(*operand);
        if (!part) return std::nullopt;
        if (!part->symbol.empty() && !total.symbol.empty() && (e.kind == Kind::mul || part->symbol != total.symbol)) return std::nullopt;
        const std::string symbol = total.symbol.empty() ? part->symbol : total.symbol;
        bool overflow = false;
        if (e.kind == Kind::add) {
          overflow |= __builtin_add_overflow(total.factor, part->factor, &total.factor);
          overflow |= __builtin_add_overflow(total.offset, part->offset, &total.offset);
        } else {   // at most one side has the symbol
          const int64_t constant = total.symbol.empty() ? total.offset : part->offset;
          const Linear with_symbol = total.symbol.empty() ? *part : total;
          overflow |= __builtin_mul_overflow(with_symbol.factor, constant, &total.factor);
          overflow |= __builtin_mul_overflow(with_symbol.offset, constant, &total.offset);
        }
        if (overflow) return std::nullopt;
        total.symbol = symbol;
      }
      return total;
    }
    default: return std::nullopt;
  }
}

int64_t evaluate(const ir::SymExpr& e, const SymbolValues& values) {
  using Kind = ir::SymExpr::Kind;
  auto operand = [&](size_t i) { return evaluate(*e.operands[i], values); };
  switch (e.kind) {
    case Kind::constant: return e.constant;
    case Kind::symbol: {
      auto it = values.find(e.symbol);
      TORCH_CHECK_VALUE(it != values.end(), "the symbol ", e.symbol, " has no value");
      return it->second;
    }
    case Kind::floor_div:
    case Kind::mod: {
      const int64_t a = operand(0), b = operand(1);
      TORCH_CHECK_VALUE(b != 0 && !(b == -1 && a == INT64_MIN), "a symbolic size divides by zero or does not fit into 64 bits");
      int64_t q = a / b, r = a % b;
      if (r != 0 && (r < 0) != (b < 0)) { --q; r += b; }
      return e.kind == Kind::mod ? r : q;
    }
    default: break;
  }
  int64_t total = operand(0);
  for (size_t i = 1; i < e.operands.size(); ++i) {
    const int64_t x = operand(i);
    bool overflow = false;
    if (e.kind == Kind::add) overflow = __builtin_add_overflow(total, x, &total);
    else if (e.kind == Kind::mul) overflow = __builtin_mul_overflow(total, x, &total);
    else total = e.kind == Kind::min ? std::min(total, x) : std::max(total, x);
    TORCH_CHECK_VALUE(!overflow, "a symbolic size does not fit into 64 bits");
  }
  return total;
}

}  // namespace

base::Result<SymbolSources> SymbolSources::find(const ir::Graph& graph, const std::vector<ir::Dim>& used) {
  SymbolSources found;
  std::set<std::string> needed;
  for (const ir::Dim& d : used) ir::collect_symbols(d, needed);
  if (needed.empty()) return found;
  std::set<std::string> told;
  std::vector<Source> solved;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Value& v = graph.value(graph.inputs[i].value);
    auto look = [&](const std::vector<ir::Dim>& dims, Source::From from) {
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!dims[d].is_symbolic()) continue;
        auto form = linear_form(*dims[d].expr());
        if (!form || form->symbol.empty() || form->factor == 0 || !needed.contains(form->symbol)) continue;
        Source source{form->symbol, i, d, from, form->factor, form->offset};
        if (form->factor == 1 && form->offset == 0 && from == Source::From::size) {
          found.sources_.push_back(source);
          told.insert(form->symbol);
        } else {
          solved.push_back(source);
        }
      }
    };
    if (v.type.kind == ir::Type::Kind::integer && needed.contains(v.name)) {
      found.sources_.push_back({v.name, i, 0, Source::From::integer, 1, 0});
      told.insert(v.name);
    } else if (v.type.is_tensor()) {
      look(v.type.tensor.sizes, Source::From::size);
      look(v.type.tensor.strides, Source::From::stride);
    }
  }
  // Strides of sizes 0 and 1 are arbitrary and products may be of several sizes, so these count only where nothing plainer tells.
  for (const Source& s : solved)
    if (told.insert(s.symbol).second) found.sources_.push_back(s);
  for (const std::string& name : needed)
    if (!told.contains(name))
      return base::Error{.what = "no input tells the value of the symbol " + name,
                         .because = "an argument inside the graph uses it, and no input has it as a size, nor is there an int input of that name",
                         .hint = "add an input '%" + name + ": int'"};
  return found;
}

SymbolValues SymbolSources::read(const std::vector<c10::IValue>& inputs) const {
  SymbolValues values;
  for (const Source& s : sources_) {
    const c10::IValue& input = inputs[s.input];
    int64_t number = 0;
    if (s.from == Source::From::integer) {
      TORCH_CHECK_TYPE(input.isInt(), "input ", s.input, " is the symbol ", s.symbol, " and must be an int");
      number = input.toInt();
    } else {
      TORCH_CHECK_TYPE(input.isTensor() && input.toTensor().defined(), "input ", s.input, " tells the symbol ", s.symbol, " and must be a tensor");
      const at::Tensor& t = input.toTensor();
      TORCH_CHECK_VALUE(static_cast<int64_t>(s.dim) < t.dim(), "input ", s.input, " has ", t.dim(), " dimensions, and its dimension ", s.dim, " tells the symbol ", s.symbol);
      number = s.from == Source::From::size ? t.size(static_cast<int64_t>(s.dim)) : t.stride(static_cast<int64_t>(s.dim));
    }
    const int64_t rest = number - s.offset;
    TORCH_CHECK_VALUE(rest % s.factor == 0, "input ", s.input, " has ", number, " where the graph says ", s.factor, "*", s.symbol, " + ", s.offset);
    auto [it, is_new] = values.try_emplace(s.symbol, rest / s.factor);
    TORCH_CHECK_VALUE(is_new || it->second == rest / s.factor, "the inputs disagree about the symbol ", s.symbol, ": ", it->second, " and ", rest / s.factor, " (input ", s.input, ")");
  }
  return values;
}

int64_t evaluate(const ir::Dim& d, const SymbolValues& values) { return d.is_symbolic() ? evaluate(*d.expr(), values) : d.value(); }

namespace {

void settle(ir::Argument& a, const SymbolValues& values) {
  ir::for_each_leaf(a, [&](ir::Argument& leaf) { if (const auto* d = leaf.as<ir::Dim>()) leaf = ir::Argument(exec::evaluate(*d, values)); });
}
void settle(ir::Block& block, const SymbolValues& values) {
  for (ir::Node& n : block.nodes) {
    for (auto& a : n.args) settle(a, values);
    for (auto& [name, a] : n.kwargs) settle(a, values);
    for (auto& r : n.regions) settle(r, values);
  }
  for (auto& a : block.outputs) settle(a, values);
}

}  // namespace

ir::Graph at_sizes(const ir::Graph& graph, const SymbolValues& values) {
  ir::Graph g = graph;
  for (ir::Value& v : g.values)
    if (v.type.is_tensor())
      for (auto* dims : {&v.type.tensor.sizes, &v.type.tensor.strides})
        for (ir::Dim& d : *dims) d = ir::Dim(evaluate(d, values));
  settle(g.body, values);
  return g;
}

}  // namespace cutaway::exec
