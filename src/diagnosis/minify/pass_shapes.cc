// Passes that shrink dimensions, and simplify dtypes and strides, of inputs; the Typer recomputes the rest of the graph.
//
// A dimension is followed through the graph by its size: all input dimensions of size 64, and the numbers 64 that stand in the arguments of
// view, expand, split and the like, change together; 4096 = 64 * 64 in such a list changes with its factors. Where that guess is wrong the shapes no longer
// fit, the Typer says so, and the candidate is dropped.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "diagnosis/minify/pass_list.h"
#include "diagnosis/minify/sizes.h"

namespace cutaway::minify {
namespace {

using Kind = bundle::InputRef::Kind;

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= std::max<int64_t>(1, sizes[d])) strides[d] = stride;
  return strides;
}

// The graph's type of an input follows its record, except where the type is symbolic.
void type_follows_record(Case& c, size_t input) {
  ir::Type& type = c.graph.value(c.graph.inputs[input].value).type;
  if (!type.is_tensor()) return;
  const bundle::InputRef& in = c.manifest.inputs[input];
  ir::TensorType fresh = in.tensor.type();
  if (in.make_contiguous) fresh.strides = ir::contiguous_strides(fresh.sizes);
  for (size_t d = 0; d < fresh.sizes.size() && d < type.tensor.sizes.size(); ++d) {
    if (type.tensor.sizes[d].is_symbolic()) fresh.sizes[d] = type.tensor.sizes[d];
    if (type.tensor.strides[d].is_symbolic()) fresh.strides[d] = type.tensor.strides[d];
  }
  fresh.requires_grad = type.tensor.requires_grad;
  type.tensor = std::move(fresh);
}

void resize(bundle::InputRef& in, size_t d, int64_t size, Part part) {
  const bool was_plain = in.make_contiguous || in.tensor.type().is_contiguous();
  if (in.kind == Kind::data) {
    if (part == Part::end) in.tensor.storage_offset += (in.tensor.sizes[d] - size) * in.tensor.strides[d];
    in.tensor.sizes[d] = size;
    in.make_contiguous = was_plain && !in.tensor.type().is_contiguous();
  } else {
    in.tensor.sizes[d] = size;
    if (was_plain) in.tensor.strides = row_major(in.tensor.sizes);
  }
}

bool is_shared(const Case& c, size_t input) {   // a resized view of a storage that others look at is another program
  const auto& t = c.manifest.inputs[input].tensor;
  if (c.manifest.inputs[input].kind != Kind::data) return false;
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i)
    if (i != input && c.manifest.inputs[i].kind == Kind::data && t.storage_id >= 0 && c.manifest.inputs[i].tensor.storage_id == t.storage_id) return true;
  return false;
}

void replace_sizes(ir::Argument& a, const std::map<int64_t, int64_t>& to, bool inside_list) {
  if (auto* list = a.as<ir::List>()) { for (auto& x : list->items) replace_sizes(x, to, true); return; }
  if (auto* tuple = a.as<ir::Tuple>()) { for (auto& x : tuple->items) replace_sizes(x, to, true); return; }
  auto* number = a.as<int64_t>();
  constexpr int64_t kLeastAlone = 8;   // below, it is as likely a dimension or a count
  if (!number || (!inside_list && *number < kLeastAlone)) return;
  if (auto it = to.find(*number); it != to.end()) { *number = it->second; return; }
  if (!inside_list) return;
  for (const auto& [v, w] : to)
    if (v > 1 && *number > v && *number % v == 0) {
      auto other = to.find(*number / v);
      *number = w * (other != to.end() ? other->second : *number / v);
      return;
    }
}

// A method that takes its list of sizes one by one: x.view(2, 3).
bool takes_sizes_one_by_one(const ir::Node& n) {
  static const std::set<std::string, std::less<>> names = {"view", "reshape", "expand", "repeat", "tile", "new_zeros", "new_ones", "new_empty"};
  return n.kind == ir::Node::Kind::call && n.target.starts_with("Tensor.") && names.count(n.target.substr(7)) > 0;
}

// Sizes above 1 among the inputs, largest first.
std::vector<int64_t> sizes_met(const Case& c) {
  std::set<int64_t, std::greater<>> sizes;
  for (const auto& in : c.manifest.inputs)
    if (in.kind != Kind::literal) for (int64_t s : in.tensor.sizes) if (s > 1) sizes.insert(s);
  return {sizes.begin(), sizes.end()};
}

// What may be taken off a size, largest first: 4, 2 and 1 off a size of 9. Taking them off in turn, each as long as it still fails, is a
// search by bisection between the size and 1.
std::vector<int64_t> parts_of(int64_t size) {
  std::vector<int64_t> parts;
  for (int64_t part = 1; 2 * part - 1 <= size - 1; part *= 2) parts.insert(parts.begin(), part);
  return parts;
}
int64_t less_some_parts(Chooser& chooser, int64_t size) {
  int64_t left = size;
  for (int64_t part : parts_of(size))
    if (!chooser.keep()) left -= part;
  return left;
}

using Sizes = std::map<int64_t, int64_t>;   // from, to
void change_sizes(Case& c, Part part, const Sizes& to) {
  if (to.empty()) return;
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal) {
      if (auto* n = in.literal.as<int64_t>()) if (auto it = to.find(*n); it != to.end()) *n = it->second;
      continue;
    }
    if (is_shared(c, i)) continue;
    for (size_t d = 0; d < in.tensor.sizes.size(); ++d)
      if (auto it = to.find(in.tensor.sizes[d]); it != to.end()) resize(in, d, it->second, part);
    type_follows_record(c, i);
  }
  ir::for_each_node(c.graph.body, [&](ir::Node& n) {
    for (auto& a : n.args) replace_sizes(a, to, takes_sizes_one_by_one(n));
    for (auto& [k, a] : n.kwargs) replace_sizes(a, to, false);
  });
}

void shrink(Chooser& chooser, Case& c, Part part, int64_t (*smaller)(int64_t)) {
  Sizes to;
  for (int64_t v : sizes_met(c))
    if (!chooser.keep()) to[v] = smaller(v);
  change_sizes(c, part, to);
}

// Sizes that stand in a relation (a linear layer of 16 to 48 whose result is cut in three) go down together, or the shapes do not fit.
void shrink_related(Chooser& chooser, Case& c, bool (*is_related)(int64_t size, int64_t other), int64_t (*follow)(int64_t other, int64_t size, int64_t left)) {
  Sizes to;
  const std::vector<int64_t> sizes = sizes_met(c);
  for (auto v = sizes.rbegin(); v != sizes.rend(); ++v) {   // a relation is one of the smaller size
    const auto follows = [&](int64_t other) { return other > *v && is_related(*v, other); };
    if (std::none_of(sizes.begin(), sizes.end(), follows)) continue;
    const int64_t left = less_some_parts(chooser, *v);
    if (left == *v) continue;
    to.emplace(*v, left);
    for (int64_t other : sizes)
      if (follows(other)) to.emplace(other, follow(other, *v, left));
  }
  change_sizes(c, Part::begin, to);
}

}  // namespace

void shrink_dims_by_parts(Chooser& chooser, Case& c, const PassContext&) {
  Sizes to;
  for (int64_t v : sizes_met(c))
    if (const int64_t left = less_some_parts(chooser, v); left != v) to[v] = left;
  change_sizes(c, Part::begin, to);
}
// A fault of every seventh size is not met by halves: 35 rows become 7 or 5.
void shrink_dims_by_factors(Chooser& chooser, Case& c, const PassContext&) {
  Sizes to;
  for (int64_t v : sizes_met(c)) {
    int64_t left = v, rest = v;
    while (rest > 1 && rest % 2 == 0) rest /= 2;   // halves are tried elsewhere
    for (int64_t p = 3; rest > 1; p = p * p > rest ? rest : p + 2)
      for (; rest % p == 0 && rest > 1; rest /= p)
        if (!chooser.keep()) left /= p;
    if (left != v) to[v] = left;
  }
  change_sizes(c, Part::begin, to);
}
void shrink_dims_with_multiples(Chooser& chooser, Case& c, const PassContext&) {
  shrink_related(
      chooser, c, [](int64_t v, int64_t other) { return other % v == 0; }, [](int64_t other, int64_t v, int64_t left) { return other / v * left; });
}
void shrink_dims_with_neighbours(Chooser& chooser, Case& c, const PassContext&) {
  shrink_related(
      chooser, c, [](int64_t v, int64_t other) { return other - v <= 2; }, [](int64_t other, int64_t v, int64_t left) { return other - v + left; });
}
void shrink_dims_to_one(Chooser& chooser, Case& c, const PassContext&) { shrink(chooser, c, Part::begin, [](int64_t) { return int64_t{1}; }); }
void shrink_dims_by_half(Chooser& chooser, Case& c, const PassContext&) { shrink(chooser, c, Part::begin, [](int64_t v) { return v / 2; }); }
void shrink_dims_by_half_keep_end(Chooser& chooser, Case& c, const PassContext&) { shrink(chooser, c, Part::end, [](int64_t v) { return v / 2; }); }

namespace {
void shrink_single(Chooser& chooser, Case& c, int64_t (*smaller)(int64_t)) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal || is_shared(c, i)) continue;
    for (size_t d = 0; d < in.tensor.sizes.size(); ++d) {
      if (in.tensor.sizes[d] <= 1 || chooser.keep()) continue;
      resize(in, d, smaller(in.tensor.sizes[d]), Part::begin);
      type_follows_record(c, i);
    }
  }
}
}  // namespace

void shrink_input_dims(Chooser& chooser, Case& c, const PassContext&) { shrink_single(chooser, c, [](int64_t) { return int64_t{1}; }); }
void shrink_input_dims_by_half(Chooser& chooser, Case& c, const PassContext&) { shrink_single(chooser, c, [](int64_t v) { return v / 2; }); }

void shrink_input_dims_by_parts(Chooser& chooser, Case& c, const PassContext&) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal || is_shared(c, i)) continue;
    for (size_t d = 0; d < in.tensor.sizes.size(); ++d) {
      const int64_t left = less_some_parts(chooser, in.tensor.sizes[d]);
      if (left == in.tensor.sizes[d]) continue;
      resize(in, d, left, Part::begin);
      type_follows_record(c, i);
    }
  }
}

uint64_t bytes_shown(const Case& c) {
  uint64_t bytes = 0;
  for (const auto& in : c.manifest.inputs) {
    if (in.kind == Kind::literal) continue;
    uint64_t here = ir::dtype_bytes(in.tensor.dtype);
    for (int64_t s : in.tensor.sizes) here *= static_cast<uint64_t>(s);
    bytes += here;
  }
  return bytes;
}

void cap_sizes(Case& c, int64_t most, Part part) {
  Sizes to;
  const std::vector<int64_t> sizes = sizes_met(c);
  std::set<int64_t> taken(sizes.begin(), sizes.end());
  for (auto v = sizes.rbegin(); v != sizes.rend(); ++v) {
    if (*v <= most) continue;
    int64_t small = most;
    while (taken.count(small)) ++small;
    if (small >= *v) continue;
    taken.insert(small);
    to.emplace(*v, small);
  }
  change_sizes(c, part, to);
}

void divide_sizes(Case& c, int64_t factor, Part part) {
  Sizes to;
  for (int64_t v : sizes_met(c))
    if (v > factor) to.emplace(v, v / factor);
  change_sizes(c, part, to);
}

base::Status set_size(Case& c, int64_t from, int64_t to) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal || std::count(in.tensor.sizes.begin(), in.tensor.sizes.end(), from) == 0) continue;
    if (is_shared(c, i)) return base::Error{.what = "an input of this size shares its memory with another input"};
    if (to > from && in.kind == Kind::data) make_seeded(in, i, "there is no data for a larger size");
  }
  change_sizes(c, Part::begin, {{from, to}});
  return {};
}

void simplify_dtypes(Chooser& chooser, Case& c, const PassContext&) {
  std::set<ir::DType> from;
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal || !ir::is_floating(in.tensor.dtype) || in.tensor.dtype == ir::DType::f32) continue;
    if (chooser.keep()) continue;
    from.insert(in.tensor.dtype);
    in.tensor.dtype = ir::DType::f32;
    if (in.kind == Kind::data) make_seeded(in, i, "simplified by minify");
    type_follows_record(c, i);
  }
  if (from.empty()) return;
  auto retarget = [&](ir::Argument& a) { if (auto* d = a.as<ir::DType>(); d && from.count(*d)) *d = ir::DType::f32; };
  ir::for_each_node(c.graph.body, [&](ir::Node& n) {
    for (auto& a : n.args) retarget(a);
    for (auto& [k, a] : n.kwargs) retarget(a);
  });
}

void simplify_strides(Chooser& chooser, Case& c, const PassContext&) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal || in.make_contiguous || in.tensor.type().is_contiguous()) continue;
    if (chooser.keep()) continue;
    if (in.kind == Kind::data) in.make_contiguous = true;
    else in.tensor.strides = row_major(in.tensor.sizes);
    type_follows_record(c, i);
  }
}

}  // namespace cutaway::minify
