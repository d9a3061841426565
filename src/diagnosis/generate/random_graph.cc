#include "diagnosis/generate/random_graph.h"

#include <algorithm>
#include <array>
#include <set>

namespace cutaway::generate {
namespace {

using ir::DType;
using Sizes = std::vector<int64_t>;

// SplitMix64: std::uniform_int_distribution differs between libraries, and a seed must mean the same graph everywhere.
class Dice {
 public:
  // The seed is mixed first: from neighbouring states SplitMix64 draws the same numbers, one step apart.
  explicit Dice(uint64_t seed) : state_(seed) { state_ = next() ^ 0x2545f4914f6cdd1dull; }
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t first, int64_t last) { return first + below(last - first + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class Range> const auto& pick(const Range& range) { return range[static_cast<size_t>(below(static_cast<int64_t>(std::size(range))))]; }

 private:
  uint64_t state_;
};

class Builder;
/// One operator: whether it can take what is there is its own matter. False: it could not, and added nothing.
struct Rule {
  const char* target;
  bool (*add)(Builder&, const char* target);
};

ir::Argument list_of(const Sizes& numbers) {
  ir::List list;
  for (int64_t n : numbers) list.items.emplace_back(n);
  return list;
}

class Builder {
 public:
  explicit Builder(const RandomOptions& options) : dice(options.seed), options_(options) {
    graph.name = "random";
    manifest.name = graph.name;
    manifest.seed = options.seed;
  }

  ir::ValueId input(const Sizes& sizes, DType dtype, int64_t most = 0) {
    ir::TensorType type = type_of(sizes, dtype);
    type.requires_grad = ir::is_floating(dtype);
    const ir::ValueId id = graph.add_input("x" + std::to_string(graph.inputs.size()), ir::Type::of(type));
    bundle::InputRef in;
    in.kind = bundle::InputRef::Kind::seeded;
    in.reason = "a random graph";
    in.seed = options_.seed * 31 + graph.inputs.size();
    in.tensor.dtype = dtype;
    in.tensor.sizes = sizes;
    for (const ir::Dim& stride : type.strides) in.tensor.strides.push_back(stride.value());
    in.tensor.requires_grad = type.requires_grad;
    if (most > 0) in.range = std::pair<int64_t, int64_t>{0, most};
    manifest.inputs.push_back(std::move(in));
    return keep(id);
  }

  bool node(const char* target, std::vector<ir::Argument> args, const Sizes& sizes, DType dtype, std::vector<std::pair<std::string, ir::Argument>> kwargs = {}) {
    ir::Node n;
    n.target = target;
    n.args = std::move(args);
    n.kwargs = std::move(kwargs);
    std::string_view name = target;
    name.remove_prefix(name.find('.') + 1);
    const ir::ValueId id = graph.add_value(std::string(name.substr(0, name.find('.'))), ir::Type::of(type_of(sizes, dtype)));
    n.results = {id};
    n.returns = {ir::Node::kSingle};
    for (const ir::Argument& a : n.args) ir::for_each_value(a, [&](ir::ValueId used) { used_.insert(used); });
    graph.body.nodes.push_back(std::move(n));
    keep(id);
    return true;
  }

  /// A value that `fits`; recent ones more often, so that graphs become deep. kNoValue: none does.
  template <class F> ir::ValueId find(F fits) {
    std::vector<ir::ValueId> found;
    for (ir::ValueId id : values_)
      if (fits(id)) found.push_back(id);
    if (found.empty()) return ir::kNoValue;
    const size_t late = dice.one_in(3) ? 0 : found.size() - std::min<size_t>(found.size(), 4);
    return found[late + static_cast<size_t>(dice.below(static_cast<int64_t>(found.size() - late)))];
  }
  ir::ValueId any_float(size_t least_rank = 0) {
    return find([&](ir::ValueId id) { return ir::is_floating(dtype(id)) && sizes(id).size() >= least_rank; });
  }
  /// One that broadcasts against `other` without making it larger; a new input where there is none.
  ir::ValueId beside(ir::ValueId other) {
    const Sizes to = sizes(other);
    if (!dice.one_in(4))
      if (const ir::ValueId found = find([&](ir::ValueId id) { return id != other && ir::is_floating(dtype(id)) && broadcasts(sizes(id), to); }); found != ir::kNoValue) return found;
    Sizes own = to;
    for (int64_t& s : own)
      if (dice.one_in(4)) s = 1;
    if (!own.empty() && dice.one_in(3)) own.erase(own.begin());
    return input(own, DType::f32);
  }

  Sizes sizes(ir::ValueId id) const {
    Sizes out;
    for (const ir::Dim& d : graph.value(id).type.tensor.sizes) out.push_back(d.value());
    return out;
  }
  DType dtype(ir::ValueId id) const { return graph.value(id).type.tensor.dtype; }
  int64_t some_size() { return dice.one_in(12) ? 1 : dice.between(2, options_.most_size); }
  Sizes some_sizes() {
    Sizes out;
    for (int64_t rank = dice.between(1, 4); rank > 0; --rank) out.push_back(some_size());
    return out;
  }
  /// As torch promotes two floating tensors.
  DType promoted(ir::ValueId a, ir::ValueId b) const {
    const DType x = dtype(a), y = dtype(b);
    if (x == y) return x;
    const size_t rank_a = graph.value(a).type.tensor.sizes.size(), rank_b = graph.value(b).type.tensor.sizes.size();
    if (rank_a == 0 && rank_b > 0) return y;   // a tensor of no dimension gives way
    if (rank_b == 0 && rank_a > 0) return x;
    if (x == DType::f64 || y == DType::f64) return DType::f64;
    return DType::f32;
  }

  RandomCase finish() && {
    for (ir::ValueId id : values_)
      if (!used_.count(id) && !is_input(id)) graph.body.outputs.emplace_back(ir::ValueRef{id});
    return {std::move(graph), std::move(manifest)};
  }

  ir::Graph graph;
  bundle::Manifest manifest;
  Dice dice;

 private:
  static ir::TensorType type_of(const Sizes& sizes, DType dtype) {
    ir::TensorType type;
    type.dtype = dtype;
    type.sizes.assign(sizes.begin(), sizes.end());
    type.strides = ir::contiguous_strides(type.sizes);
    return type;
  }
  static bool broadcasts(const Sizes& small, const Sizes& to) {
    if (small.size() > to.size()) return false;
    for (size_t i = 1; i <= small.size(); ++i)
      if (small[small.size() - i] != 1 && small[small.size() - i] != to[to.size() - i]) return false;
    return true;
  }
  bool is_input(ir::ValueId id) const {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const ir::Input& in) { return in.value == id; });
  }
  ir::ValueId keep(ir::ValueId id) {
    values_.push_back(id);
    return id;
  }
  const RandomOptions& options_;
  std::vector<ir::ValueId> values_;
  std::set<ir::ValueId> used_;
};

ir::Argument ref(ir::ValueId id) { return ir::ValueRef{id}; }

bool unary(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  return x != ir::kNoValue && b.node(target, {ref(x)}, b.sizes(x), b.dtype(x));
}
bool binary(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  if (x == ir::kNoValue) return false;
  const ir::ValueId y = b.beside(x);
  return b.node(target, {ref(x), ref(y)}, b.sizes(x), b.promoted(x, y));
}
bool scaled(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  static constexpr std::array kNumbers = {0.5, -1.25, 2.0, 3.0, 0.1};
  return x != ir::kNoValue && b.node(target, {ref(x), b.dice.pick(kNumbers)}, b.sizes(x), b.dtype(x));
}
bool power(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  return x != ir::kNoValue && b.node(target, {ref(x), b.dice.between(2, 3)}, b.sizes(x), b.dtype(x));
}
bool clamp(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  return x != ir::kNoValue && b.node(target, {ref(x), -0.75, 0.75}, b.sizes(x), b.dtype(x));
}
bool choose(Builder& b, const char* target) {   // where(x > y, x, z)
  const ir::ValueId x = b.any_float();
  if (x == ir::kNoValue) return false;
  const ir::ValueId y = b.beside(x), z = b.beside(x);
  b.node("aten.gt.Tensor", {ref(x), ref(y)}, b.sizes(x), DType::boolean);
  const ir::ValueId mask = b.graph.body.nodes.back().results.front();
  return b.node(target, {ref(mask), ref(x), ref(z)}, b.sizes(x), b.promoted(x, z));
}
bool reduction(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  const Sizes from = b.sizes(x);
  const bool keeps = b.dice.one_in(2);
  Sizes dims, to;
  for (size_t d = 0; d < from.size(); ++d)
    if (b.dice.one_in(2)) dims.push_back(static_cast<int64_t>(d));
  if (dims.empty()) dims.push_back(b.dice.below(static_cast<int64_t>(from.size())));
  for (size_t d = 0; d < from.size(); ++d) {
    const bool is_reduced = std::count(dims.begin(), dims.end(), static_cast<int64_t>(d)) > 0;
    if (!is_reduced) to.push_back(from[d]);
    else if (keeps) to.push_back(1);
  }
  return b.node(target, {ref(x), list_of(dims), keeps}, to, b.dtype(x));
}
bool spread(Builder& b, const char* target) {   // a variance of one element is no number
  const ir::ValueId x = b.find([&](ir::ValueId id) { return ir::is_floating(b.dtype(id)) && !b.sizes(id).empty() && b.sizes(id).back() > 1; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  to.back() = 1;
  return b.node(target, {ref(x), list_of({-1})}, to, b.dtype(x), {{"correction", b.dice.between(0, 1)}, {"keepdim", true}});
}
bool along(Builder& b, const char* target) {   // softmax, cumsum: the size stays
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  return b.node(target, {ref(x), b.dice.between(-static_cast<int64_t>(b.sizes(x).size()), static_cast<int64_t>(b.sizes(x).size()) - 1)}, b.sizes(x), b.dtype(x));
}
bool layer_norm(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return b.dtype(id) == DType::f32 && !b.sizes(id).empty() && b.sizes(id).back() > 1; });
  if (x == ir::kNoValue) return false;
  const Sizes last = {b.sizes(x).back()};
  const ir::ValueId weight = b.input(last, DType::f32), bias = b.input(last, DType::f32);
  return b.node(target, {ref(x), list_of(last), ref(weight), ref(bias)}, b.sizes(x), DType::f32);
}
bool linear(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return b.dtype(id) == DType::f32 && !b.sizes(id).empty(); });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t from = to.back();
  to.back() = b.some_size();
  const ir::ValueId weight = b.input({to.back(), from}, DType::f32), bias = b.input({to.back()}, DType::f32);
  return b.node(target, {ref(x), ref(weight), ref(bias)}, to, DType::f32);
}
bool matmul(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return b.dtype(id) == DType::f32 && b.sizes(id).size() >= 2; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x), other = to;
  other[other.size() - 2] = to.back();
  other.back() = to.back() = b.some_size();
  return b.node(target, {ref(x), ref(b.input(other, DType::f32))}, to, DType::f32);
}
bool convolution(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return b.dtype(id) == DType::f32 && b.sizes(id).size() == 4 && b.sizes(id)[2] >= 3 && b.sizes(id)[3] >= 3; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t from = to[1], padding = b.dice.below(2);
  to[1] = b.some_size();
  const ir::ValueId weight = b.input({to[1], from, 3, 3}, DType::f32), bias = b.input({to[1]}, DType::f32);
  to[2] += 2 * padding - 2;
  to[3] += 2 * padding - 2;
  return b.node(target, {ref(x), ref(weight), ref(bias), list_of({1, 1}), list_of({padding, padding})}, to, DType::f32);
}
bool pool(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return b.dtype(id) == DType::f32 && b.sizes(id).size() == 4 && b.sizes(id)[2] >= 2 && b.sizes(id)[3] >= 2; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  to[2] /= 2;
  to[3] /= 2;
  return b.node(target, {ref(x), list_of({2, 2})}, to, DType::f32);
}
bool transpose(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(2);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t first = b.dice.below(static_cast<int64_t>(to.size())), second = b.dice.below(static_cast<int64_t>(to.size()));
  std::swap(to[static_cast<size_t>(first)], to[static_cast<size_t>(second)]);
  return b.node(target, {ref(x), first, second}, to, b.dtype(x));
}
bool permute(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(2);
  if (x == ir::kNoValue) return false;
  const Sizes from = b.sizes(x);
  Sizes order, to;
  for (size_t d = 0; d < from.size(); ++d) order.insert(order.begin() + b.dice.below(static_cast<int64_t>(d) + 1), static_cast<int64_t>(d));
  for (int64_t d : order) to.push_back(from[static_cast<size_t>(d)]);
  return b.node(target, {ref(x), list_of(order)}, to, b.dtype(x));
}
bool reshape(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(2);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  if (b.dice.one_in(2)) {   // two neighbours become one
    const size_t d = static_cast<size_t>(b.dice.below(static_cast<int64_t>(to.size()) - 1));
    to[d] *= to[d + 1];
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  } else {                  // another order of the same numbers
    std::rotate(to.begin(), to.begin() + 1, to.end());
  }
  return b.node(target, {ref(x), list_of(to)}, to, b.dtype(x));
}
bool unsqueeze(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { return ir::is_floating(b.dtype(id)) && b.sizes(id).size() < 5; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t d = b.dice.below(static_cast<int64_t>(to.size()) + 1);
  to.insert(to.begin() + d, 1);
  return b.node(target, {ref(x), d}, to, b.dtype(x));
}
bool expand(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { const Sizes s = b.sizes(id); return ir::is_floating(b.dtype(id)) && std::count(s.begin(), s.end(), 1) > 0; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  for (int64_t& s : to)
    if (s == 1) s = b.some_size();
  return b.node(target, {ref(x), list_of(to)}, to, b.dtype(x));
}
bool slice(Builder& b, const char* target) {
  const ir::ValueId x = b.find([&](ir::ValueId id) { const Sizes s = b.sizes(id); return ir::is_floating(b.dtype(id)) && !s.empty() && *std::max_element(s.begin(), s.end()) > 1; });
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const auto d = std::max_element(to.begin(), to.end()) - to.begin();
  const int64_t size = to[static_cast<size_t>(d)], first = b.dice.below(size), step = b.dice.between(1, 2);
  to[static_cast<size_t>(d)] = (size - first + step - 1) / step;
  return b.node(target, {ref(x), static_cast<int64_t>(d), first, size, step}, to, b.dtype(x));
}
bool select(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t d = b.dice.below(static_cast<int64_t>(to.size())), at = b.dice.below(to[static_cast<size_t>(d)]);
  to.erase(to.begin() + d);
  return b.node(target, {ref(x), d, at}, to, b.dtype(x));
}
bool flip(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  return x != ir::kNoValue && b.node(target, {ref(x), list_of({b.dice.below(static_cast<int64_t>(b.sizes(x).size()))})}, b.sizes(x), b.dtype(x));
}
bool roll(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  return x != ir::kNoValue && b.node(target, {ref(x), list_of({b.dice.between(-2, 2)}), list_of({b.dice.below(static_cast<int64_t>(b.sizes(x).size()))})}, b.sizes(x), b.dtype(x));
}
bool concatenate(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  const Sizes own = b.sizes(x);
  const DType dtype = b.dtype(x);
  const ir::ValueId y = b.find([&](ir::ValueId id) { return b.dtype(id) == dtype && b.sizes(id) == own; });
  const bool is_new = target == std::string_view("aten.stack");
  const int64_t d = b.dice.below(static_cast<int64_t>(own.size()) + (is_new ? 1 : 0));
  Sizes to = own;
  if (is_new) to.insert(to.begin() + d, 2);
  else to[static_cast<size_t>(d)] *= 2;
  return b.node(target, {ir::List{{ref(x), ref(y)}}, d}, to, dtype);
}
bool pad(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t before = b.dice.below(3), after = b.dice.below(3);
  to.back() += before + after;
  return b.node(target, {ref(x), list_of({before, after}), 0.5}, to, b.dtype(x));
}
bool index_select(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t d = b.dice.below(static_cast<int64_t>(to.size())), count = b.some_size();
  const ir::ValueId places = b.input({count}, DType::i64, to[static_cast<size_t>(d)]);
  to[static_cast<size_t>(d)] = count;
  return b.node(target, {ref(x), d, ref(places)}, to, b.dtype(x));
}
bool gather(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float(1);
  if (x == ir::kNoValue) return false;
  Sizes to = b.sizes(x);
  const int64_t d = b.dice.below(static_cast<int64_t>(to.size())), most = to[static_cast<size_t>(d)];
  to[static_cast<size_t>(d)] = b.some_size();
  return b.node(target, {ref(x), d, ref(b.input(to, DType::i64, most))}, to, b.dtype(x));
}
bool embedding(Builder& b, const char* target) {
  const int64_t rows = b.some_size(), width = b.some_size(), count = b.some_size();
  const ir::ValueId weight = b.input({rows, width}, DType::f32), places = b.input({count}, DType::i64, rows);
  return b.node(target, {ref(weight), ref(places)}, {count, width}, DType::f32);
}
bool cast(Builder& b, const char* target) {
  const ir::ValueId x = b.any_float();
  if (x == ir::kNoValue) return false;
  static constexpr std::array kTo = {DType::f64, DType::f32, DType::bf16, DType::f32};
  const DType to = b.dice.pick(kTo);
  return b.node(target, {ref(x), to}, b.sizes(x), to);
}

constexpr Rule kRules[] = {
    {"aten.abs", unary}, {"aten.add.Tensor", binary}, {"aten.add.Tensor", scaled}, {"aten.amax", reduction}, {"aten.amin", reduction}, {"aten.atan2", binary}, {"aten.avg_pool2d", pool},
    {"aten.cat", concatenate}, {"aten.clamp", clamp}, {"aten.clone", unary}, {"aten.constant_pad_nd", pad}, {"aten.conv2d", convolution}, {"aten.cos", unary}, {"aten.cumsum", along},
    {"aten.div.Tensor", scaled}, {"aten.elu", unary}, {"aten.embedding", embedding}, {"aten.erf", unary}, {"aten.expand", expand}, {"aten.flip", flip}, {"aten.gather", gather}, {"aten.gelu", unary},
    {"aten.hardswish", unary}, {"aten.index_select", index_select}, {"aten.layer_norm", layer_norm}, {"aten.leaky_relu", unary}, {"aten.linear", linear}, {"aten.log_softmax.int", along},
    {"aten.logsumexp", reduction}, {"aten.matmul", matmul}, {"aten.max_pool2d", pool}, {"aten.maximum", binary}, {"aten.mean.dim", reduction}, {"aten.minimum", binary}, {"aten.mul.Tensor", binary},
    {"aten.mul.Tensor", scaled}, {"aten.neg", unary}, {"aten.permute", permute}, {"aten.pow.Tensor_Scalar", power}, {"aten.relu", unary}, {"aten.reshape", reshape}, {"aten.roll", roll},
    {"aten.select.int", select}, {"aten.sigmoid", unary}, {"aten.silu", unary}, {"aten.sin", unary}, {"aten.slice.Tensor", slice}, {"aten.softmax.int", along}, {"aten.softplus", unary},
    {"aten.stack", concatenate}, {"aten.sub.Tensor", binary}, {"aten.sum.dim_IntList", reduction}, {"aten.tanh", unary}, {"aten.to.dtype", cast}, {"aten.transpose.int", transpose},
    {"aten.unsqueeze", unsqueeze}, {"aten.var.correction", spread}, {"aten.where.self", choose},
};

}  // namespace

RandomCase random_case(const RandomOptions& options) {
  Builder b(options);
  for (int64_t inputs = b.dice.between(1, 3); inputs > 0; --inputs) b.input(b.some_sizes(), DType::f32);
  while (static_cast<int>(b.graph.body.nodes.size()) < options.nodes) {
    const Rule& rule = b.dice.pick(kRules);
    rule.add(b, rule.target);
  }
  return std::move(b).finish();
}

std::vector<std::string> random_operators() {
  std::set<std::string> names = {"aten.gt.Tensor"};
  for (const Rule& rule : kRules) names.insert(rule.target);
  return {names.begin(), names.end()};
}

}  // namespace cutaway::generate
