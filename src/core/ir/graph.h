// The program that every part of Cutaway passes around: a list of nodes over named, typed values.
// Main type: Graph, a plain value that can be copied. It knows no tensors and no operators beyond their names.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ir/argument.h"
#include "core/ir/type.h"

namespace cutaway::ir {

/// Where in the user's program a node comes from. All parts may be empty; line 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  std::string function;   ///< "Net.forward"
  std::string module;     ///< "encoder.layer.0": path of the nn.Module
  bool operator==(const Location&) const = default;
  bool is_known() const { return !file.empty(); }
};
/// Index into Graph::locations; kNoLocation means unknown. Locations are interned because thousands of nodes share few.
using LocationId = uint32_t;
inline constexpr LocationId kNoLocation = 0xffffffffu;

struct Value {
  std::string name;   ///< without the "%"; unique within the graph; letters, digits, '_' and '.'
  Type type;
};

struct Block;

/// State that holds while a region's operators run. Absent means: as outside.
struct RegionState {
  std::optional<bool> grad_enabled;
  std::optional<bool> inference_mode;
  struct Autocast {
    Device device; bool enabled = false; DType dtype = DType::bf16; bool cache = true;
    bool operator==(const Autocast&) const = default;
  };
  std::vector<Autocast> autocast;
  bool operator==(const RegionState&) const = default;
  bool is_default() const { return *this == RegionState{}; }
};

/// One step. An operator of torch's dispatcher, a captured call that holds the operators it ran, or a scope that only sets state.
struct Node {
  enum class Kind : uint8_t { op, call, scope };
  Kind kind = Kind::op;
  /// op: "aten.add.Tensor" (namespace.name[.overload]; the overload "" is left out). call: the qualified Python name
  /// ("torch.nn.functional.linear", "Tensor.view"). scope: empty.
  std::string target;
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  /// Flat list of what it defines. `returns` gives the structure: kSingle for one value, n >= 0 for a list of n.
  std::vector<ValueId> results;
  static constexpr int32_t kSingle = -1;
  std::vector<int32_t> returns;
  LocationId location = kNoLocation;
  RegionState state;            ///< call and scope only
  std::vector<Block> regions;   ///< none for op; exactly one for call and scope
};

/// Nodes in order, and what they yield. A region may use every value of the blocks around it that is defined before it.
struct Block {
  std::vector<Node> nodes;
  /// Of the graph: what it returns (literals and nested lists allowed). Of a region: one for each of the node's results, flat.
  std::vector<Argument> outputs;
};

/// What an input is to the model it came from.
enum class InputKind : uint8_t { user, parameter, buffer, constant };
struct Input {
  ValueId value = kNoValue;
  InputKind kind = InputKind::user;
  std::string qualified_name;   ///< of a parameter, buffer or constant: "encoder.layer.0.weight"
  bool operator==(const Input&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Input> inputs;
  Block body;
  std::vector<Location> locations;

  /// The name is made unique by a suffix "_1", "_2", …; characters that a name may not have become '_'.
  ValueId add_value(std::string name, Type type);
  ValueId add_input(std::string name, Type type, InputKind kind = InputKind::user, std::string qualified_name = {});
  LocationId add_location(const Location&);   ///< interned, in constant time; an empty one is kNoLocation
  /// Gives the value another name, made unique as in add_value. Writing `values[id].name` instead may lead to two equal names.
  void rename(ValueId id, std::string name);
  const Value& value(ValueId id) const { return values[id]; }
  Value& value(ValueId id) { return values[id]; }

  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

 private:
  struct Index;                       // names in use, location -> id; rebuilt when absent, never copied or compared
  std::unique_ptr<Index> index_;
  Index& index();
  void catch_up_names();
  void catch_up_locations();
  std::string unique_name(std::string base);
};

/// Exact equality of everything that the text form shows: names, types, nodes, order, locations.
bool identical(const Graph&, const Graph&);
/// Calls f(node) for every node, regions included, in program order. f may take Node& or const Node&.
template <class BlockT, class F> void for_each_node(BlockT& block, F&& f) {
  for (auto& n : block.nodes) { f(n); for (auto& r : n.regions) for_each_node(r, f); }
}
/// Calls f(id) for every value that the node itself uses (arguments; not its regions).
template <class F> void for_each_use(const Node& n, F&& f) {
  for (auto& a : n.args) for_each_value(a, f);
  for (auto& [k, a] : n.kwargs) for_each_value(a, f);
}
/// What people mean by the size of a graph: a captured call counts as one, whatever its region holds; a scope counts what it holds.
size_t count_nodes(const Graph&);
/// Operators that run: every op, in regions too.
size_t count_ops(const Graph&);

/// "aten.add.Tensor" <-> ("aten::add", "Tensor").
struct OpName { std::string name; std::string overload; };
std::optional<OpName> split_op_name(std::string_view target);
std::string join_op_name(std::string_view name, std::string_view overload);

}  // namespace cutaway::ir
