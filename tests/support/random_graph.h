// Random graphs for property tests: verified by construction, with every kind of literal, several and listed results, captured
// calls, scopes, writes and random draws. Operators are toys ("toy.mix"), whose meaning tests/support/toy_interpreter.h defines.
#pragma once
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::testing {

class RandomGraph {
 public:
  struct Options {
    size_t nodes = 12;
    bool effects = true;
    bool regions = true;
    bool odd_literals = true;   ///< false: integers only
  };
  RandomGraph(uint64_t seed, Options options) : options_(options), random_(seed) {}

  ir::Graph make() {
    graph_ = {};
    graph_.name = pick({"forward", "", "odd name", "f"});
    std::vector<ir::ValueId> visible;
    for (size_t i = 0, n = 1 + below(4); i < n; ++i) {
      const auto kind = static_cast<ir::InputKind>(below(4));
      visible.push_back(graph_.add_input(pick({"x", "w", "arg.0", "7"}), tensor(), kind, kind == ir::InputKind::user ? "" : pick({"a.weight", "quoted \"name\"", "é"})));
    }
    block(graph_.body, visible, options_.nodes, 0);
    for (size_t i = 0, n = below(4); i < n; ++i) graph_.body.outputs.push_back(chance(5) ? literal(0, visible) : value(visible));
    return graph_;
  }

  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool chance(size_t one_in) { return below(one_in) == 0; }

 private:
  std::string pick(std::vector<std::string> from) { return from[below(from.size())]; }
  ir::Argument value(const std::vector<ir::ValueId>& visible) {
    // Near ones more often: chains are long and something is dead.
    const size_t back = chance(3) ? below(visible.size()) : below(std::min<size_t>(visible.size(), 4));
    return ir::ValueRef{visible[visible.size() - 1 - back]};
  }
  ir::Dim dim() {
    if (!options_.odd_literals || !chance(6)) return below(5);
    auto s = [&](std::string n) { return ir::Dim::symbol(std::move(n)).expr(); };
    auto number = std::make_shared<ir::SymExpr>();
    number->constant = static_cast<int64_t>(below(9)) - 4;
    auto e = std::make_shared<ir::SymExpr>();
    e->kind = static_cast<ir::SymExpr::Kind>(2 + below(6));
    e->operands = {s("s0"), chance(2) ? number : s("u1")};
    if (!chance(2)) return ir::Dim(std::shared_ptr<const ir::SymExpr>(e));
    auto outer = std::make_shared<ir::SymExpr>();
    outer->kind = static_cast<ir::SymExpr::Kind>(2 + below(6));
    outer->operands = {e, s("n"), s("s12")};
    if (outer->kind == ir::SymExpr::Kind::floor_div || outer->kind == ir::SymExpr::Kind::mod) outer->operands.pop_back();
    return ir::Dim(std::shared_ptr<const ir::SymExpr>(outer));
  }
  ir::Type tensor() {
    ir::TensorType t;
    t.dtype = static_cast<ir::DType>(chance(2) ? 6 : below(ir::kDTypeCount));
    for (size_t i = 0, n = below(4); i < n; ++i) t.sizes.push_back(dim());
    t.strides = ir::contiguous_strides(t.sizes);
    if (chance(4) && !t.strides.empty()) t.strides[below(t.strides.size())] = dim_not_negative();
    if (chance(5)) t.device = {pick({"cuda", "cpu", "mkldnn", "my_device"}), static_cast<int>(below(3)) - 1};
    if (chance(9)) t.layout = static_cast<ir::Layout>(below(8));
    t.requires_grad = chance(4);
    return ir::Type::of(t);
  }
  ir::Dim dim_not_negative() { return static_cast<int64_t>(below(1000)); }
  ir::Type type() { return chance(6) ? ir::Type::of(static_cast<ir::Type::Kind>(1 + below(9))) : tensor(); }

  ir::Argument literal(int depth, const std::vector<ir::ValueId>& visible) {
    if (!options_.odd_literals) return static_cast<int64_t>(below(100));
    const auto items = [&] {
      std::vector<ir::Argument> out;
      for (size_t i = 0, n = below(4); i < n; ++i) out.push_back(chance(3) ? value(visible) : literal(depth + 1, visible));
      return out;
    };
    using Limits = std::numeric_limits<double>;
    switch (below(depth > 3 ? 14 : 18)) {
      case 0: return ir::None{};
      case 1: return chance(2);
      case 2: return chance(4) ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(random_());
      case 3: return chance(2) ? -0.0 : static_cast<double>(below(10));
      case 4: return chance(2) ? Limits::quiet_NaN() : chance(2) ? Limits::infinity() : -Limits::infinity();
      case 5: return chance(2) ? Limits::denorm_min() : 0.1 * static_cast<double>(static_cast<int64_t>(random_()));
      case 6: return std::complex<double>(chance(2) ? Limits::quiet_NaN() : 1.5, chance(2) ? -0.0 : 2.0);
      case 7: return ir::Argument(pick({"", "relu", "π ≈ 3", "tab\tline\nquote\" back\\", std::string("nul\0bad\xff", 8), "\xe2\x80\xae", "#"}));
      case 8: return static_cast<ir::DType>(below(ir::kDTypeCount));
      case 9: return chance(2) ? ir::Argument(static_cast<ir::Layout>(below(8))) : ir::Argument(static_cast<ir::MemoryFormat>(below(4)));
      case 10: return ir::Device{pick({"cpu", "cuda", "mkldnn", "meta", "f32"}), static_cast<int>(below(4)) - 1};
      case 11: return dim();
      case 12: return ir::GeneratorName{pick({"default", "a b"})};
      case 13: return chance(2) ? ir::Argument(ir::Ellipsis{}) : ir::Argument(ir::NamedObject{"torch.float_power"});
      case 14: return ir::List{items()};
      case 15: return ir::Tuple{items()};
      case 16: return ir::Slice{{chance(2) ? ir::Argument(ir::None{}) : value(visible), literal(depth + 1, visible), ir::None{}}};
      default: return ir::Dict{{{"k", literal(depth + 1, visible)}, {"λ", value(visible)}}};
    }
  }

  void arguments(ir::Node& n, const std::vector<ir::ValueId>& visible) {
    for (size_t i = 0, count = 1 + below(3); i < count; ++i) n.args.push_back(chance(3) ? literal(0, visible) : value(visible));
    if (chance(3)) n.kwargs.emplace_back("alpha", literal(0, visible));
    if (chance(9)) n.kwargs.emplace_back("größe", value(visible));
  }
  ir::ValueId result(ir::Node& n, ir::Type t) {
    n.results.push_back(graph_.add_value(pick({"h", "y", "relu", "mm.1", "0"}), std::move(t)));
    return n.results.back();
  }

  void block(ir::Block& b, std::vector<ir::ValueId>& visible, size_t count, int depth) {
    for (size_t i = 0; i < count; ++i) {
      ir::Node n;
      if (!chance(4)) n.location = graph_.add_location({pick({"model.py", "dir/a b.py", "", "c:\\x.py", "in"}), static_cast<int>(below(90)), pick({"", "Net.forward", "f.<locals>.g", "in", "two words"}), pick({"", "encoder.layer.0", "in"})});
      if (options_.regions && depth < 3 && chance(6)) region(n, visible, depth);
      else op(n, visible);
      for (ir::ValueId id : n.results) visible.push_back(id);
      b.nodes.push_back(std::move(n));
    }
  }

  void op(ir::Node& n, const std::vector<ir::ValueId>& visible) {
    if (options_.effects && chance(6)) {
      if (chance(2)) {
        n.target = "toy.draw";
        n.returns = {ir::Node::kSingle};
        result(n, type());
      } else {
        n.target = "toy.bump_.Tensor";
        n.args = {value(visible), literal(0, visible)};
        n.returns = {ir::Node::kSingle};
        result(n, graph_.value(n.args[0].as<ir::ValueRef>()->id).type);
      }
      return;
    }
    n.target = pick({"toy.mix", "toy.mix.Tensor", "toy.twist"});
    arguments(n, visible);
    for (size_t i = 0, count = 1 + chance(4); i < count; ++i) {
      if (!chance(6)) {
        n.returns.push_back(ir::Node::kSingle);
        result(n, type());
      } else {
        n.returns.push_back(static_cast<int32_t>(1 + below(3)));
        for (int32_t k = 0; k < n.returns.back(); ++k) result(n, type());
      }
    }
  }

  void region(ir::Node& n, const std::vector<ir::ValueId>& visible, int depth) {
    n.kind = chance(2) ? ir::Node::Kind::call : ir::Node::Kind::scope;
    if (n.kind == ir::Node::Kind::call) {
      n.target = pick({"torch.nn.functional.linear", "Tensor.view", "<lambda>"});
      arguments(n, visible);
    }
    if (chance(2)) n.state.grad_enabled = chance(2);
    if (chance(4)) n.state.inference_mode = chance(2);
    if (chance(3)) n.state.autocast.push_back({{pick({"cpu", "cuda", "mkldnn"}), -1}, chance(2), ir::DType::bf16, chance(2)});
    ir::Block inner;
    std::vector<ir::ValueId> inside = visible;
    block(inner, inside, 1 + below(4), depth + 1);
    for (size_t i = 0, count = 1 + below(2); i < count; ++i) {
      inner.outputs.push_back(value(inside));
      n.returns.push_back(ir::Node::kSingle);
      result(n, graph_.value(inner.outputs.back().as<ir::ValueRef>()->id).type);
    }
    n.regions.push_back(std::move(inner));
  }

  Options options_;
  std::mt19937_64 random_;
  ir::Graph graph_;
};

}  // namespace cutaway::testing
