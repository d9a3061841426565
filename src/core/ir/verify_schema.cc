// A node against the schema of its operator: rules S1 to S7 of docs/formats/graph.md.
#include <cstdint>
#include <unordered_set>

#include "core/ir/breaches.h"
#include "core/ir/nearest.h"
#include "core/ir/text.h"

namespace cutaway::ir {
namespace {

/// "int[2]?" taken apart: what it is a list of, or its own name.
struct KindName {
  std::string_view name;   // without "?", list brackets and alias annotation
  bool is_optional = false;
  bool is_list = false;
  bool has_length = false;      // "int[2]": a single number may stand for all of them
  bool items_optional = false;  // "Tensor?[]"
};
KindName take_apart(std::string_view s) {
  KindName k;
  if (s.ends_with('?')) {
    k.is_optional = true;
    s.remove_suffix(1);
  }
  if (s.ends_with(']')) {
    const size_t open = s.rfind('[');
    k.is_list = true;
    k.has_length = open + 2 < s.size();
    s = s.substr(0, open);
    if (s.ends_with('?')) {
      k.items_optional = true;
      s.remove_suffix(1);
    }
  }
  k.name = s.substr(0, s.find('('));   // "Tensor(a!)"
  return k;
}

bool any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (std::string_view n : names)
    if (n == name) return true;
  return false;
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  bool matches(const Argument& a, std::string_view type) const {
    const KindName k = take_apart(type);
    if (a.is_none() && k.is_optional) return true;
    if (!k.is_list) return item(a, k.name);
    const std::vector<Argument>* items = a.as<List>() ? &a.as<List>()->items : a.as<Tuple>() ? &a.as<Tuple>()->items : nullptr;
    if (!items) return (k.has_length && item(a, k.name)) || is_opaque(a);
    for (const Argument& x : *items)
      if (!(item(x, k.name) || (k.items_optional && x.is_none()))) return false;
    return true;
  }

 private:
  const Type* type_of(const Argument& a) const {
    auto* r = a.as<ValueRef>();
    return r && r->id < graph_.values.size() ? &graph_.values[r->id].type : nullptr;
  }
  bool is_opaque(const Argument& a) const {
    const Type* t = type_of(a);
    return t && t->kind == Type::Kind::opaque;
  }
  bool item(const Argument& a, std::string_view name) const {
    using K = Type::Kind;
    const Type* t = type_of(a);
    if (is_opaque(a)) return true;
    const bool is_int = a.as<int64_t>() || a.as<Dim>() || (t && t->kind == K::integer);
    const bool is_float = a.as<double>() || (t && t->kind == K::floating);
    const bool is_bool = a.as<bool>() || (t && t->kind == K::boolean);
    const bool is_complex = a.as<std::complex<double>>() || (t && t->kind == K::complex);
    if (name == "Tensor") return t && t->is_tensor();
    if (any_of(name, {"int", "SymInt"})) return is_int;
    if (any_of(name, {"float", "SymFloat"})) return is_float || is_int;
    if (any_of(name, {"bool", "SymBool"})) return is_bool;
    if (name == "complex") return is_complex || is_float || is_int;
    if (any_of(name, {"Scalar", "number"})) return is_int || is_float || is_bool || is_complex;
    if (name == "str") return a.as<std::string>() || (t && t->kind == K::string);
    if (name == "ScalarType") return a.as<DType>() || (t && t->kind == K::dtype);
    if (name == "Device") return a.as<Device>() || (t && t->kind == K::device);
    if (name == "Layout") return a.as<Layout>() != nullptr;
    if (name == "MemoryFormat") return a.as<MemoryFormat>() != nullptr;
    if (name == "Generator") return a.as<GeneratorName>() != nullptr;
    return true;   // a class, a stream, a dimension's name: nothing is known of it here
  }

  const Graph& graph_;
};

std::string count(size_t n, std::string_view thing) { return std::to_string(n) + " " + std::string(thing) + (n == 1 ? "" : "s"); }

}  // namespace

void verify_schema(const Graph& graph, const Node& n, const SchemaTable& schemas, Breaches& breaches) {
  const Schema* schema = schemas.find(n.target);
  if (!schema) return breaches.add(&n, "the operator " + n.target + " is not known");                                    // S1

  const Matcher matcher(graph);
  const auto check_kind = [&](const Argument& a, const Schema::Arg& arg) {                                               // S5
    if (!matcher.matches(a, arg.type))
      breaches.add(&a, "the argument " + arg.name + " of " + n.target + " is a " + arg.type + ", not " + print_argument(graph, a));
  };
  std::vector<bool> given(schema->args.size(), false);
  size_t positional = 0;
  for (const Schema::Arg& arg : schema->args) positional += !arg.kwarg_only;
  for (size_t i = 0, next = 0; i < n.args.size(); ++i, ++next) {
    while (next < schema->args.size() && schema->args[next].kwarg_only) ++next;
    if (next >= schema->args.size()) {                                                                                   // S2
      breaches.add(&n.args[i], n.target + " takes at most " + count(positional, "argument") + " without a name, this is one more");
      break;
    }
    given[next] = true;
    check_kind(n.args[i], schema->args[next]);
  }
  for (const auto& [key, a] : n.kwargs) {
    size_t i = 0;
    while (i < schema->args.size() && schema->args[i].name != key) ++i;
    if (i == schema->args.size()) {                                                                                      // S3
      std::vector<std::string_view> known;
      for (const Schema::Arg& arg : schema->args) known.push_back(arg.name);
      breaches.add(&key, n.target + " has no argument " + key + did_you_mean(key, known));
    } else if (given[i]) {                                                                                               // S4
      breaches.add(&key, "the argument " + key + " of " + n.target + " is given twice");
    } else {
      given[i] = true;
      check_kind(a, schema->args[i]);
    }
  }
  for (size_t i = 0; i < schema->args.size(); ++i)                                                                       // S6
    if (!given[i] && !schema->args[i].has_default) breaches.add(&n, n.target + " needs the argument " + schema->args[i].name);

  if (schema->returns.size() != n.returns.size())                                                                        // S7
    return breaches.add(&n, n.target + " returns " + count(schema->returns.size(), "result") + ", here stand " + std::to_string(n.returns.size()));
  for (size_t i = 0; i < n.returns.size(); ++i) {
    const bool is_list = take_apart(schema->returns[i]).is_list;
    if (is_list != (n.returns[i] != Node::kSingle))
      breaches.add(&n, "result " + std::to_string(i) + " of " + n.target + (is_list ? " is a list" : " is not a list"));
  }
}

}  // namespace cutaway::ir
