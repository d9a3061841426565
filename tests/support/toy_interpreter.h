// Gives graphs of toy operators a meaning in integers, so that tests can show that an edit keeps it: every operator hashes what it
// gets; "toy.bump_" changes its first argument's cell, which its result shares; "toy.draw" depends on how many were drawn before.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace cutaway::testing {

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x7f4a7c15ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}
inline uint64_t hash_of(std::string_view s) { return std::hash<std::string_view>()(s); }

/// Runs a graph; inputs are numbers by position.
class ToyInterpreter {
 public:
  explicit ToyInterpreter(const ir::Graph& g) : graph_(g), cell_of_(g.values.size(), ~size_t{0}) {}

  std::vector<uint64_t> run(const std::vector<uint64_t>& inputs) {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) bind(graph_.inputs[i].value, inputs.at(i));
    block(graph_.body, 0);
    std::vector<uint64_t> out;
    for (const ir::Argument& a : graph_.body.outputs) out.push_back(meaning(a));
    return out;
  }
  /// After run(): what a value holds at the end.
  uint64_t at_end(ir::ValueId id) const { return cells_.at(cell_of_.at(id)); }

 private:
  void bind(ir::ValueId id, uint64_t v) {
    cell_of_[id] = cells_.size();
    cells_.push_back(v);
  }
  uint64_t meaning(const ir::Argument& a) const {
    if (auto* r = a.as<ir::ValueRef>()) return cells_.at(cell_of_.at(r->id));
    // The text of a literal, with what its values hold added in order.
    ir::Argument plain = a;
    uint64_t h = 0;
    ir::for_each_value(plain, [&](ir::ValueId& id) {
      h = mix(h, cells_.at(cell_of_.at(id)));
      id = ir::kNoValue;
    });
    return mix(h, hash_of(ir::print_argument(graph_, plain)));
  }
  void block(const ir::Block& b, uint64_t state) {
    for (const ir::Node& n : b.nodes) {
      if (n.kind != ir::Node::Kind::op) {
        const uint64_t inner = mix(state, (n.state.grad_enabled ? 1 + *n.state.grad_enabled : 0) * 3 + n.state.autocast.size());
        block(n.regions.at(0), inner);
        for (size_t i = 0; i < n.results.size(); ++i) {
          const ir::Argument& out = n.regions[0].outputs.at(i);
          if (auto* r = out.as<ir::ValueRef>()) cell_of_[n.results[i]] = cell_of_[r->id];
          else bind(n.results[i], meaning(out));
        }
        continue;
      }
      uint64_t h = mix(state, hash_of(n.target));
      for (const ir::Argument& a : n.args) h = mix(h, meaning(a));
      for (const auto& [key, a] : n.kwargs) h = mix(h, mix(hash_of(key), meaning(a)));
      if (n.target == "toy.draw") h = mix(h, ++drawn_);
      if (n.target == "toy.bump_.Tensor") {
        const size_t cell = cell_of_.at(n.args.at(0).as<ir::ValueRef>()->id);
        cells_[cell] = h;
        cell_of_[n.results.at(0)] = cell;
        continue;
      }
      for (size_t i = 0; i < n.results.size(); ++i) bind(n.results[i], mix(h, i));
    }
  }

  const ir::Graph& graph_;
  std::vector<size_t> cell_of_;   // values may share a cell, as tensors share a storage
  std::vector<uint64_t> cells_;
  uint64_t drawn_ = 0;
};

/// Schemas of the toy operators that tests about effects need. "toy.mix" takes anything and is left out.
class ToySchemas : public ir::SchemaTable {
 public:
  ToySchemas() {
    table_["toy.draw"] = {{}, {"Tensor"}, true};
    table_["toy.bump_.Tensor"] = {{{"self", "Tensor", false, false, true}, {"by", "Any", false, false, false}}, {"Tensor"}, false};
  }
  const ir::Schema* find(std::string_view target) const override {
    const auto it = table_.find(target);
    return it == table_.end() ? nullptr : &it->second;
  }

 private:
  std::map<std::string, ir::Schema, std::less<>> table_;
};

}  // namespace cutaway::testing
