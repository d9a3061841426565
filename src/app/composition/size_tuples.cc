#include "app/composition/size_tuples.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <iterator>
#include <string>

namespace nb = nanobind;

namespace cutaway::composition {
namespace {

constexpr const char* kOperations[] = {"", "", "add", "mul", "floor_div", "mod", "min", "max"};   // by ir::SymExpr::Kind
nb::object python_expression(const ir::SymExpr& e) {
  if (e.kind == ir::SymExpr::Kind::constant) return nb::int_(e.constant);
  if (e.kind == ir::SymExpr::Kind::symbol) return nb::str(e.symbol.c_str());
  nb::list parts;
  parts.append(kOperations[static_cast<size_t>(e.kind)]);
  for (const auto& o : e.operands) parts.append(python_expression(*o));
  return nb::tuple(parts);
}
}  // namespace

ir::Dim size_of_tuple(nb::handle h) {
  if (PyLong_Check(h.ptr())) return ir::Dim(nb::cast<int64_t>(h));
  if (PyUnicode_Check(h.ptr())) return ir::Dim::symbol(nb::cast<std::string>(h));
  ir::SymExpr e;
  const auto name = nb::cast<std::string>(h[0]);
  size_t kind = 2;
  while (kind < std::size(kOperations) && name != kOperations[kind]) ++kind;
  if (kind == std::size(kOperations)) throw nb::value_error(("no operation on sizes is called " + name).c_str());
  e.kind = static_cast<ir::SymExpr::Kind>(kind);
  for (size_t i = 1; i < nb::len(h); ++i) {
    const ir::Dim operand = size_of_tuple(h[i]);
    e.operands.push_back(operand.is_symbolic() ? operand.expr() : std::make_shared<const ir::SymExpr>(ir::SymExpr{.constant = operand.value()}));
  }
  return ir::Dim(std::make_shared<const ir::SymExpr>(std::move(e)));
}

nb::object tuple_of_size(const ir::Dim& d) { return d.is_symbolic() ? python_expression(*d.expr()) : nb::object(nb::int_(d.value())); }

nb::object sizes_of_inputs(const ir::Graph& g) {
  bool is_symbolic = false;
  nb::list out;
  for (const ir::Input& input : g.inputs) {
    const ir::Value& v = g.value(input.value);
    if (v.type.kind == ir::Type::Kind::integer) {
      is_symbolic = true;
      out.append(v.name);
    } else if (v.type.is_tensor()) {
      nb::list sizes;
      for (const ir::Dim& d : v.type.tensor.sizes) {
        is_symbolic = is_symbolic || d.is_symbolic();
        sizes.append(tuple_of_size(d));
      }
      out.append(sizes);
    } else {
      out.append(nb::none());
    }
  }
  return is_symbolic ? nb::object(out) : nb::none();
}
std::shared_ptr<const std::vector<symbolic::Guard>> conditions_of(nb::handle list) {
  auto out = std::make_shared<std::vector<symbolic::Guard>>();
  for (nb::handle h : list) {
    const auto sign = nb::cast<std::string>(h[0]);
    using Kind = symbolic::Condition::Kind;
    symbolic::Guard g;
    g.kind = sign == "==" ? Kind::equal : sign == "!=" ? Kind::not_equal : sign == "<" ? Kind::less : Kind::less_equal;
    g.left = size_of_tuple(h[1]);
    g.right = size_of_tuple(h[2]);
    g.because = "the backend asked";
    out->push_back(std::move(g));
  }
  return out;
}

}  // namespace cutaway::composition
