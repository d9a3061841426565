#include "compiler/codegen/joined.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/views.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace joining {   // its helpers have names that other files of the folder use too
namespace {

using ir::DType;
using ir::ValueId;

constexpr double kCardProcessors = 132, kTile = 128;   ///< of the card that choices are made for; others run the same
constexpr double kCopied = 1.5e6;                  ///< bytes a microsecond that weights are copied with, reading and writing

ValueId operand_id(const ir::Argument& a) { return a.as<ir::ValueRef>() ? a.as<ir::ValueRef>()->id : ir::kNoValue; }
const int64_t* given_integer(const ir::Node& n, size_t i) { return i < n.args.size() ? n.args[i].as<int64_t>() : nullptr; }

struct One { size_t node; ValueId weight, bias = ir::kNoValue; int64_t columns = 0; };
struct Joined { ValueId rows = ir::kNoValue; int64_t m = 0, k = 0; DType dtype = DType::f32; bool has_bias = false; std::vector<One> all; };

class Joiner {
 public:
  Joiner(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) : g_(g), options_(options), done_(done) {}

  void run() {
    for (const ir::Input& in : g_.inputs) inputs_.insert(in.value);
    for (const ir::Argument& a : g_.body.outputs) ir::for_each_value(a, [&](ValueId id) { returned_.insert(id); });
    for (size_t i = 0; i < nodes().size(); ++i) {
      for (ValueId r : nodes()[i].results) made_by_[r] = i;
      for_each_use_inside(nodes()[i], [&](ValueId id) { users_[id].push_back(i); });
    }
    std::map<std::pair<ValueId, bool>, Joined> found;   // by the left side, and whether there is a bias
    std::vector<std::pair<ValueId, bool>> order;
    for (size_t i = 0; i < nodes().size(); ++i) {
      const auto one = product(nodes()[i], i);
      if (!one) continue;
      const bool has_bias = one->bias != ir::kNoValue;
      const std::pair<ValueId, bool> key{operand_id(nodes()[i].args[has_bias ? 1 : 0]), has_bias};
      Joined& j = found[key];
      if (j.all.empty()) {
        order.push_back(key);
        const Shape x = *shape_of(g_.value(key.first).type);
        j = {key.first, x.sizes[0], x.sizes[1], type(key.first).dtype, has_bias, {}};
      }
      j.all.push_back(*one);
    }
    std::map<size_t, std::vector<ir::Node>> instead;
    for (const auto& key : order)
      if (pays(found[key]) && static_cast<int64_t>(done_.size()) < options_.fuel && restride(found[key])) join(found[key], instead);
    if (instead.empty()) return;
    std::vector<ir::Node> made;
    for (size_t i = 0; i < nodes().size(); ++i) {
      if (const auto it = instead.find(i); it == instead.end()) made.push_back(std::move(nodes()[i]));
      else std::ranges::move(it->second, std::back_inserter(made));
    }
    nodes() = std::move(made);
  }

 private:
  std::vector<ir::Node>& nodes() { return g_.body.nodes; }
  const ir::TensorType& type(ValueId id) const { return g_.value(id).type.tensor; }
  bool is_whole_input(ValueId id) const { return id != ir::kNoValue && inputs_.contains(id) && shape_of(g_.value(id).type) && type(id).is_contiguous(); }

  /// A product by the transposed view of a weight.
  std::optional<One> product(const ir::Node& n, size_t at) const {
    const bool has_bias = n.target == "aten.addmm";
    if (n.kind != ir::Node::Kind::op || (!has_bias && n.target != "aten.mm") || !n.kwargs.empty() || n.args.size() != (has_bias ? 3 : 2) || n.results.size() != 1) return std::nullopt;
    const ValueId x = operand_id(n.args[has_bias ? 1 : 0]), view = operand_id(n.args[has_bias ? 2 : 1]);
    if (x == ir::kNoValue || view == ir::kNoValue || !made_by_.contains(view)) return std::nullopt;
    const ir::Node& t = g_.body.nodes[made_by_.at(view)];
    if (t.target != "aten.t" || t.args.size() != 1 || !is_whole_input(operand_id(t.args[0]))) return std::nullopt;
    One one{at, operand_id(t.args[0])};
    const ir::Type& result = g_.value(n.results[0]).type;
    const auto xs = shape_of(g_.value(x).type), ws = shape_of(g_.value(one.weight).type), ys = shape_of(result);
    if (!xs || !ws || !ys || xs->sizes.size() != 2 || ws->sizes.size() != 2 || !result.tensor.is_contiguous() || xs->numel() == 0 || ws->numel() == 0 || result.tensor.device.type != "cuda") return std::nullopt;
    const DType d = result.tensor.dtype;
    if ((d != DType::f32 && d != DType::bf16 && d != DType::f16) || type(x).dtype != d || type(one.weight).dtype != d || type(x).device != result.tensor.device || type(one.weight).device != result.tensor.device) return std::nullopt;
    one.columns = ws->sizes[0];
    if (one.columns * ir::dtype_bytes(d) % 16 != 0 || ws->sizes[1] * ir::dtype_bytes(d) % 16 != 0) return std::nullopt;   // slices begin where vectors may
    if (has_bias) {
      one.bias = operand_id(n.args[0]);
      if (!is_whole_input(one.bias) || type(one.bias).dtype != d || shape_of(g_.value(one.bias).type)->sizes != std::vector<int64_t>{one.columns}) return std::nullopt;
    }
    return one;
  }

  /// Each product alone takes the time of a tile at least, however few tiles it has.
  bool pays(const Joined& j) const {
    if (j.all.size() < 2) return false;
    std::set<ValueId> weights;
    double apart = 0, together = 0, bytes = 0;
    for (const One& one : j.all) {
      if (!weights.insert(one.weight).second) return false;
      const double tiles = std::ceil(static_cast<double>(j.m) / kTile) * std::ceil(static_cast<double>(one.columns) / kTile) / kCardProcessors;
      apart += std::max(1.0, tiles);
      together += tiles;
      bytes += static_cast<double>(one.columns * j.k * ir::dtype_bytes(j.dtype));
    }
    const double tile = 1.5 + static_cast<double>(j.k) * (j.dtype == DType::f32 ? 0.02 : 0.0065);   // microseconds
    return (apart - std::max(1.0, together)) * tile > 1.2 * bytes / kCopied;
  }

  /// Gives the results, and views of them, the strides that they will have. False, and nothing changed, where something needs them as they were.
  bool restride(const Joined& j) {
    std::map<ValueId, ir::Type> before;
    int64_t columns = 0;
    for (const One& one : j.all) columns += one.columns;
    bool ok = true;
    std::vector<ValueId> todo;
    const auto set = [&](ValueId id, const std::vector<int64_t>& strides) {
      before.try_emplace(id, g_.value(id).type);
      std::vector<ir::Dim> dims(strides.begin(), strides.end());
      g_.values[id].type.tensor.strides = std::move(dims);
      todo.push_back(id);
    };
    for (const One& one : j.all) set(nodes()[one.node].results[0], {columns, 1});
    while (ok && !todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      ok = ok && !returned_.contains(id);
      for (size_t user : users_[id]) {
        const ir::Node& n = nodes()[user];
        if (n.kind != ir::Node::Kind::op) { ok = false; break; }
        if (view_of(g_, n)) {
          const auto strides = strides_of_view(g_, n);
          ok = ok && strides.has_value();
          for (size_t r = 0; ok && r < n.results.size(); ++r) set(n.results[r], (*strides)[r]);
        } else {
          ok = ok && takes_any_strides(n);
        }
      }
    }
    if (!ok)
      for (auto& [id, type] : before) g_.values[id].type = type;
    return ok;
  }
  /// Whose result lies as it does now, whatever the strides of what it reads are.
  bool takes_any_strides(const ir::Node& n) const {
    if (n.target.starts_with("aten._scaled_dot_product_") || n.target == "aten.mm" || n.target == "aten.addmm" || n.target == "aten.bmm" || n.target == "aten._addmm_activation") return true;
    const RuleRow* row = find_rule(n.target);
    return (row && !n.target.starts_with("aten.as_strided")) || reduction_of(g_, n).has_value();
  }

  void join(const Joined& j, std::map<size_t, std::vector<ir::Node>>& instead) {
    const ir::Node& first = nodes()[j.all[0].node];
    const std::string name = g_.value(first.results[0]).name;
    int64_t columns = 0;
    ir::List weights, biases;
    for (const One& one : j.all) {
      columns += one.columns;
      weights.items.emplace_back(ir::ValueRef{one.weight});
      if (j.has_bias) biases.items.emplace_back(ir::ValueRef{one.bias});
    }
    std::vector<ir::Node>& out = instead[j.all[0].node];
    const auto make = [&](const char* target, std::vector<ir::Argument> args, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
      ir::TensorType t;
      t.dtype = j.dtype;
      t.device = type(first.results[0]).device;
      for (int64_t s : sizes) t.sizes.emplace_back(s);
      for (int64_t s : strides) t.strides.emplace_back(s);
      const ValueId id = g_.add_value(name + ".joined", ir::Type::of(std::move(t)));
      out.push_back(node(target, std::move(args), id, first.location));
      return ir::Argument(ir::ValueRef{id});
    };
    const ir::Argument weight = make("aten.cat", {weights}, {columns, j.k}, {j.k, 1});
    const ir::Argument turned = make("aten.t", {weight}, {j.k, columns}, {1, j.k});
    const ir::Argument rows(ir::ValueRef{j.rows});
    const ir::Argument y = j.has_bias ? make("aten.addmm", {make("aten.cat", {biases}, {columns}, {1}), rows, turned}, {j.m, columns}, {columns, 1}) : make("aten.mm", {rows, turned}, {j.m, columns}, {columns, 1});
    int64_t at = 0;
    for (const One& one : j.all) {
      const ir::Node& n = nodes()[one.node];
      ir::Node part = node("aten.slice.Tensor", {y, int64_t{1}, at, at + one.columns}, n.results[0], n.location);
      at += one.columns;
      instead.try_emplace(one.node);
      out.push_back(std::move(part));
    }
    done_.push_back({"joined products", name});
  }
  static ir::Node node(const char* target, std::vector<ir::Argument> args, ValueId result, uint32_t location) {
    ir::Node n;
    n.target = target;
    n.args = std::move(args);
    n.results = {result};
    n.returns = {ir::Node::kSingle};
    n.location = location;
    return n;
  }

  ir::Graph& g_;
  const RewriteOptions& options_;
  std::vector<Rewritten>& done_;
  std::set<ValueId> inputs_, returned_;
  std::map<ValueId, size_t> made_by_;
  std::map<ValueId, std::vector<size_t>> users_;
};

/// Strides of the same elements in the same order under other sizes; none where one stride a dimension cannot say it.
std::optional<std::vector<int64_t>> reshaped(const Shape& from, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  if (from.numel() == 0) return std::nullopt;
  // Pieces of the base that are walked through evenly, innermost first.
  auto left = static_cast<int64_t>(from.sizes.size()) - 1;
  auto to = static_cast<int64_t>(sizes.size()) - 1;
  while (left >= 0 || to >= 0) {
    int64_t piece = 1, stride = 1;
    bool begun = false;
    while (left >= 0) {
      const int64_t size = from.sizes[static_cast<size_t>(left)], step = from.strides[static_cast<size_t>(left)];
      if (size == 1) { --left; continue; }
      if (begun && step != stride * piece) break;
      if (!begun) stride = step;
      begun = true;
      piece *= size;
      --left;
    }
    int64_t filled = 1;
    while (to >= 0 && (filled < piece || sizes[static_cast<size_t>(to)] == 1)) {
      strides[static_cast<size_t>(to)] = stride * filled;
      filled *= sizes[static_cast<size_t>(to)];
      --to;
    }
    if (filled != piece) return std::nullopt;
    if (!begun && to >= 0) return std::nullopt;
  }
  return strides;
}

}  // namespace
}  // namespace joining

std::optional<std::vector<std::vector<int64_t>>> strides_of_view(const ir::Graph& g, const ir::Node& n) {
  using namespace joining;
  const Shape from = *shape_of(g.value(operand_id(n.args[0])).type);
  const auto rank = static_cast<int64_t>(from.sizes.size());
  std::vector<std::vector<int64_t>> out;
  for (ValueId r : n.results) {
    const std::vector<int64_t> sizes = shape_of(g.value(r).type)->sizes;
    const auto dim = [&](const int64_t* d) -> std::optional<size_t> {
      if (!d || *d < -rank || *d >= rank) return std::nullopt;
      return static_cast<size_t>(*d < 0 ? *d + rank : *d);
    };
    std::vector<int64_t> strides = from.strides;
    if (n.target == "aten.view" || n.target == "aten._unsafe_view" || n.target == "aten.unsqueeze") {
      const auto found = reshaped(from, sizes);
      if (!found) return std::nullopt;
      strides = *found;
    } else if (n.target == "aten.t" && rank == 2) {
      std::swap(strides[0], strides[1]);
    } else if (n.target == "aten.transpose.int") {
      const auto a = dim(given_integer(n, 1)), b = dim(given_integer(n, 2));
      if (!a || !b) return std::nullopt;
      std::swap(strides[*a], strides[*b]);
    } else if (n.target == "aten.permute" && n.args.size() == 2 && n.args[1].as<ir::List>() && static_cast<int64_t>(n.args[1].as<ir::List>()->items.size()) == rank) {
      for (size_t d = 0; d < strides.size(); ++d) {
        const auto a = dim(n.args[1].as<ir::List>()->items[d].as<int64_t>());
        if (!a) return std::nullopt;
        strides[d] = from.strides[*a];
      }
    } else if (n.target == "aten.expand") {
      strides.assign(sizes.size() - from.sizes.size(), 0);
      for (size_t d = 0; d < from.sizes.size(); ++d) strides.push_back(from.sizes[d] == 1 && sizes[strides.size()] != 1 ? 0 : from.strides[d]);
    } else if (n.target == "aten.slice.Tensor") {
      const auto d = dim(given_integer(n, 1));
      const int64_t* step = given_integer(n, 4);
      if (!d || (n.args.size() > 4 && !step)) return std::nullopt;
      if (step) strides[*d] *= *step;
    } else if (n.target == "aten.select.int") {
      const auto d = dim(given_integer(n, 1));
      if (!d) return std::nullopt;
      strides.erase(strides.begin() + static_cast<long>(*d));
    } else if (n.target != "aten.split.Tensor" && n.target != "aten.split_with_sizes" && n.target != "aten.alias" && n.target != "aten.detach") {
      return std::nullopt;
    }
    if (strides.size() != sizes.size()) return std::nullopt;
    out.push_back(std::move(strides));
  }
  return out;
}

void join_products(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  if (!options.off.contains("joined products")) joining::Joiner(g, options, done).run();
}

}  // namespace cutaway::codegen
