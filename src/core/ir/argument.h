// What stands between the parentheses of a node: values and literals of every schema kind, nested as needed.
#pragma once
#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ir/type.h"

namespace cutaway::ir {

/// Index into Graph::values. Stable while the graph is edited; renumber() compacts.
using ValueId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffu;

struct Argument;
struct None { bool operator==(const None&) const = default; };
struct Ellipsis { bool operator==(const Ellipsis&) const = default; };
struct ValueRef { ValueId id = kNoValue; bool operator==(const ValueRef&) const = default; };
struct GeneratorName { std::string name; bool operator==(const GeneratorName&) const = default; };   ///< a random state by name
struct List { std::vector<Argument> items; bool operator==(const List&) const; };
struct Tuple { std::vector<Argument> items; bool operator==(const Tuple&) const; };
struct Slice { std::vector<Argument> parts; bool operator==(const Slice&) const; };        ///< always start, stop, step
struct Dict { std::vector<std::pair<std::string, Argument>> items; bool operator==(const Dict&) const; };
/// A thing known only by its qualified name: a function or a class passed as an argument of a captured call.
struct NamedObject { std::string name; bool operator==(const NamedObject&) const = default; };

/// One argument. Equality is exact: NaN equals NaN, 0.0 differs from -0.0, 1 differs from 1.0 and from true.
struct Argument {
  using Variant = std::variant<None, ValueRef, bool, int64_t, double, std::complex<double>, std::string, DType, Layout,
                               MemoryFormat, Device, Dim, GeneratorName, List, Tuple, Slice, Dict, Ellipsis, NamedObject>;
  Variant v;
  Argument() = default;
  template <class T> Argument(T value) : v(std::move(value)) {}
  Argument(int value) : v(int64_t{value}) {}
  Argument(const char* text) : v(std::string(text)) {}
  bool operator==(const Argument&) const;
  template <class T> const T* as() const { return std::get_if<T>(&v); }
  template <class T> T* as() { return std::get_if<T>(&v); }
  bool is_none() const { return std::holds_alternative<None>(v); }
};
inline bool List::operator==(const List& o) const { return items == o.items; }
inline bool Tuple::operator==(const Tuple& o) const { return items == o.items; }
inline bool Slice::operator==(const Slice& o) const { return parts == o.parts; }
inline bool Dict::operator==(const Dict& o) const { return items == o.items; }

/// Calls f(ValueId&) for every value inside, in order; constness follows the argument's.
template <class F> void for_each_value(Argument& a, F&& f) {
  if (auto* r = a.as<ValueRef>()) f(r->id);
  else if (auto* l = a.as<List>()) for (auto& x : l->items) for_each_value(x, f);
  else if (auto* t = a.as<Tuple>()) for (auto& x : t->items) for_each_value(x, f);
  else if (auto* s = a.as<Slice>()) for (auto& x : s->parts) for_each_value(x, f);
  else if (auto* d = a.as<Dict>()) for (auto& x : d->items) for_each_value(x.second, f);
}
template <class F> void for_each_value(const Argument& a, F&& f) {
  for_each_value(const_cast<Argument&>(a), [&](ValueId& id) { f(static_cast<ValueId>(id)); });
}

}  // namespace cutaway::ir
