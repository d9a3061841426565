#include "compiler/aot/captured_facts.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/exec/interpreter.h"
#include "core/trace/value_checks.h"

namespace cutaway::aot {
namespace {

void collect_locations(const ir::Block& block, ir::LocationId around, std::vector<ir::LocationId>& by_position) {
  for (const ir::Node& n : block.nodes) {
    const ir::LocationId here = n.location != ir::kNoLocation ? n.location : around;
    if (n.kind == ir::Node::Kind::op) by_position.push_back(here);
    for (const ir::Block& r : n.regions) collect_locations(r, here, by_position);
  }
}

/// Every operator and call of a program in order, with what may share memory.
class Memory {
 public:
  explicit Memory(const ir::Graph& graph) : shares_(graph.values.size()), made_at_(graph.values.size(), -1) {
    std::iota(shares_.begin(), shares_.end(), size_t{0});
    for (const ir::Node& n : graph.body.nodes) {
      walk(n);
      ++at_;
    }
  }
  std::optional<size_t> replaceable_from(ir::ValueId value) {
    const size_t memory = find(value);
    int64_t last = made_at_[value];
    for (const Step& s : steps_)
      for (const ir::ValueId id : s.writes) if (find(id) == memory) last = std::max(last, s.at);
    for (const Step& s : steps_)
      for (const ir::ValueId id : s.reads) if (s.at > last && id != value && find(id) == memory && made_at_[id] <= last) return std::nullopt;
    return static_cast<size_t>(last + 1);
  }
  /// An operator of the dispatcher that writes to two arguments of the same memory.
  bool writes_twice() {
    return std::ranges::any_of(steps_, [&](const Step& s) {
      std::set<size_t> seen;
      return s.is_known && std::ranges::any_of(s.writes, [&](ir::ValueId id) { return !seen.insert(find(id)).second; });
    });
  }

 private:
  struct Step { int64_t at = 0; std::vector<ir::ValueId> reads, writes; bool is_known = false; };   // `at`: which node of the body, or in a region of which; `is_known`: it has a schema

  size_t find(size_t id) {
    while (shares_[id] != id) id = shares_[id] = shares_[shares_[id]];
    return id;
  }
  void share(ir::ValueId a, ir::ValueId b) {
    if (a < shares_.size() && b < shares_.size()) shares_[find(a)] = find(b);
  }
  void walk(const ir::Node& n) {
    for (const ir::Block& r : n.regions) {
      for (const ir::Node& inner : r.nodes) walk(inner);
      for (const ir::Argument& a : r.outputs) ir::for_each_value(a, [&](ir::ValueId id) { for (const ir::ValueId result : n.results) share(result, id); });
    }
    Step step{at_, {}, {}, false};
    ir::for_each_use(n, [&](ir::ValueId id) { step.reads.push_back(id); });
    if (n.regions.empty()) look_at(n, step);
    for (const ir::ValueId r : n.results)
      if (r < made_at_.size()) made_at_[r] = at_;
    steps_.push_back(std::move(step));
  }
  /// What is not known may share memory with everything that it is given, and writes to it.
  void look_at(const ir::Node& n, Step& step) {
    const auto* schema = exec::dispatcher_schemas().find(n.target);
    const auto name = ir::split_op_name(n.target);
    const auto op = schema && name ? c10::Dispatcher::singleton().findSchema({name->name, name->overload}) : std::nullopt;
    step.is_known = op.has_value();
    if (!op) step.writes = step.reads;
    else
      for (size_t i = 0; i < schema->args.size(); ++i) {
        if (!schema->args[i].is_written) continue;
        const auto write = [&](ir::ValueId id) { step.writes.push_back(id); };
        if (i < n.args.size()) ir::for_each_value(n.args[i], write);
        for (const auto& [key, a] : n.kwargs) if (key == schema->args[i].name) ir::for_each_value(a, write);
      }
    const auto is_aliased = [](const c10::Argument& a) { return a.alias_info() != nullptr; };
    // Composite ones may give what they are given, without a word in the schema (dropout in eval mode).
    const bool may_share = !op || std::ranges::any_of(op->schema().returns(), is_aliased) || op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    if (may_share)
      for (const ir::ValueId r : n.results)
        for (const ir::ValueId id : step.reads) share(r, id);
  }

  std::vector<size_t> shares_;       // by value: another one of the same memory
  std::vector<int64_t> made_at_;     // by value: the node of the body; -1 for inputs
  std::vector<Step> steps_;
  int64_t at_ = 0;
};

}  // namespace

std::optional<size_t> replaceable_from(const ir::Graph& graph, ir::ValueId value) { return Memory(graph).replaceable_from(value); }

bool writes_to_arguments(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (n.kind != ir::Node::Kind::op || found) return;
    const auto* schema = exec::dispatcher_schemas().find(n.target);
    found = schema && std::any_of(schema->args.begin(), schema->args.end(), [](const ir::Schema::Arg& a) { return a.is_written; });
  });
  return found;
}

std::vector<ir::LocationId> locations_by_position(const ir::Graph& graph) {
  std::vector<ir::LocationId> list;
  collect_locations(graph.body, ir::kNoLocation, list);
  return list;
}

bool takes_data(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found = found || n.target == "aten.data"; });
  return found;
}

std::string why_writes_would_be_lost(const ir::Graph& graph) {
  if (!writes_to_arguments(graph)) return {};
  if (uses_offsets(graph)) return "a view by as_strided() may reach past the tensor that it is taken of, and what is written there would be lost";
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found = found || n.target.starts_with("aten.unsafe_"); });
  if (found) return "unsafe_chunk() and unsafe_split() do not say that their results share memory";
  if (Memory(graph).writes_twice()) return "an operator writes to the same memory twice, and only one of these writes would be kept";
  return {};
}

bool uses_offsets(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found = found || n.target.starts_with("aten.as_strided"); });
  return found;
}

std::string_view checking_operator(const std::string& target) {
  const auto op = ir::split_op_name(target);
  return op ? trace::checking_operator(op->overload.empty() ? op->name : op->name + "." + op->overload) : std::string_view();
}

}  // namespace cutaway::aot
