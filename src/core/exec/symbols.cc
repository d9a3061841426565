#include "core/exec/symbols.h"

#include <algorithm>
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

}  // namespace

base::Result<SymbolSources> SymbolSources::find(const ir::Graph& graph, const std::vector<ir::Dim>& used) {
  SymbolSources found;
  std::set<std::string> needed;
  for (const ir::Dim& d : used) ir::collect_symbols(d, needed);
  if (needed.empty()) return found;
  auto names = std::make_shared<const std::vector<std::string>>(needed.begin(), needed.end());
  found.names_ = names;
  const auto slot_of = [&](const std::string& name) { return static_cast<size_t>(std::ranges::lower_bound(*names, name) - names->begin()); };
  std::vector<bool> is_told(names->size());
  const auto add = [&](Source source) {
    source.is_first = !is_told[source.slot];
    is_told[source.slot] = true;
    found.sources_.push_back(source);
  };
  std::vector<Source> solved;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Value& v = graph.value(graph.inputs[i].value);
    auto look = [&](const std::vector<ir::Dim>& dims, Source::From from) {
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!dims[d].is_symbolic()) continue;
        auto form = linear_form(*dims[d].expr());
        if (!form || form->symbol.empty() || form->factor == 0 || !needed.contains(form->symbol)) continue;
        const Source source{slot_of(form->symbol), i, d, from, form->factor, form->offset};
        if (form->factor == 1 && form->offset == 0 && from == Source::From::size) add(source);
        else solved.push_back(source);
      }
    };
    if (v.type.kind == ir::Type::Kind::integer && needed.contains(v.name)) {
      add({slot_of(v.name), i, 0, Source::From::integer, 1, 0});
    } else if (v.type.is_tensor()) {
      look(v.type.tensor.sizes, Source::From::size);
      look(v.type.tensor.strides, Source::From::stride);
    }
  }
  // Strides of sizes 0 and 1 are arbitrary and products may be of several sizes, so these count only where nothing plainer tells.
  for (const Source& s : solved)
    if (!is_told[s.slot]) add(s);
  for (size_t i = 0; i < names->size(); ++i)
    if (!is_told[i])
      return base::Error{.what = "no input tells the value of the symbol " + (*names)[i],
                         .because = "an argument inside the graph uses it, and no input has it as a size, nor is there an int input of that name",
                         .hint = "add an input '%" + (*names)[i] + ": int'"};
  return found;
}

std::vector<int64_t> SymbolSources::read(const std::vector<c10::IValue>& inputs) const {
  std::vector<int64_t> numbers(names_->size());
  for (const Source& s : sources_) {
    const c10::IValue& input = inputs[s.input];
    const auto symbol = [&]() -> const std::string& { return (*names_)[s.slot]; };
    int64_t number = 0;
    if (s.from == Source::From::integer) {
      TORCH_CHECK_TYPE(input.isInt(), "input ", s.input, " is the symbol ", symbol(), " and must be an int");
      number = input.toInt();
    } else {
      TORCH_CHECK_TYPE(input.isTensor() && input.toTensor().defined(), "input ", s.input, " tells the symbol ", symbol(), " and must be a tensor");
      const at::Tensor& t = input.toTensor();
      TORCH_CHECK_VALUE(static_cast<int64_t>(s.dim) < t.dim(), "input ", s.input, " has ", t.dim(), " dimensions, and its dimension ", s.dim, " tells the symbol ", symbol());
      number = s.from == Source::From::size ? t.size(static_cast<int64_t>(s.dim)) : t.stride(static_cast<int64_t>(s.dim));
    }
    if (s.factor != 1 || s.offset != 0) {
      int64_t rest = 0;
      const bool fits = !__builtin_sub_overflow(number, s.offset, &rest);
      const auto whole = fits && symbolic::modulo(rest, s.factor) == 0 ? symbolic::floor_div(rest, s.factor) : std::nullopt;
      TORCH_CHECK_VALUE(whole, "input ", s.input, " has ", number, " where the graph says ", s.factor, "*", symbol(), " + ", s.offset);
      number = *whole;
    }
    if (s.is_first) numbers[s.slot] = number;
    else TORCH_CHECK_VALUE(numbers[s.slot] == number, "the inputs disagree about the symbol ", symbol(), ": ", numbers[s.slot], " and ", number, " (input ", s.input, ")");
  }
  return numbers;
}

int64_t evaluate(const ir::Dim& d, const symbolic::SymbolValues& values) {
  const auto n = symbolic::evaluate(d, values);
  TORCH_CHECK_VALUE(n.ok(), n.error().what);
  return *n;
}

}  // namespace cutaway::exec
