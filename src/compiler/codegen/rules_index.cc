// Rules of operators that read at places which they work out: indices from tensors, parts of a result, positions.
#include <algorithm>
#include <numeric>

#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace indexing {   // its helpers have names that other files of the folder use too
namespace {

using base::Error;
using base::Result;
using ir::DType;

constexpr size_t kMostParts = 16;   ///< of a concatenation: each is a load and a choice

Error refusal(std::string what) { return Error{.what = std::move(what)}; }

/// Small integers are not stored by kernels.
base::Status storable(const Lowering& l) {
  switch (l.result()) {
    case DType::f32: case DType::f64: case DType::bf16: case DType::f16: case DType::i32: case DType::i64: case DType::boolean: return {};
    default: return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  }
}

Shape result_shape(const Lowering& l) { return *shape_of(l.graph.value(l.node.results[0]).type); }
Result<ir::ValueId> tensor(const Lowering& l, const ir::Argument* a) {
  if (!l.is_tensor(a)) return refusal("an argument that is not a tensor");
  return a->as<ir::ValueRef>()->id;
}
Shape shape(const Lowering& l, ir::ValueId id) { return *shape_of(l.graph.value(id).type); }
DType dtype(const Lowering& l, ir::ValueId id) { return l.graph.value(id).type.tensor.dtype; }

Result<int64_t> integer(const Lowering& l, size_t position, std::string_view name, std::optional<int64_t> otherwise = {}) {
  const ir::Argument* a = l.argument(position, name);
  if (a && a->as<int64_t>()) return *a->as<int64_t>();
  if (!a && otherwise) return *otherwise;
  return refusal("the argument " + std::string(name) + " is not a number");
}
Result<size_t> dimension(const Lowering& l, size_t position, size_t rank, std::optional<int64_t> otherwise = {}) {
  CUTAWAY_TRY_ASSIGN(int64_t d, integer(l, position, "dim", otherwise));
  if (d < 0) d += static_cast<int64_t>(rank);
  if (d < 0 || d >= static_cast<int64_t>(rank)) return refusal("a dimension that is not there");
  return static_cast<size_t>(d);
}

/// An integer tensor's element, i64, looked at with these strides of the result's dimensions.
Result<TermId> index_term(Lowering& l, ir::ValueId index, const std::vector<int64_t>& strides, int64_t size, bool is_wrapped) {
  const DType t = dtype(l, index);
  if (t != DType::i64 && t != DType::i32) return refusal("indices of dtype " + std::string(ir::dtype_name(t)));
  return l.terms.index(l.terms.cast(l.reads.strided(index, strides, 0, std::nullopt), Held::i64), size, is_wrapped);
}

struct Indexed { size_t dim; ir::ValueId index; std::vector<int64_t> strides; };   ///< strides: of the index, by the result's dimensions
/// The source's element at the indices; `strides` are the source's in the result's dimensions.
Result<TermId> load_indexed(Lowering& l, ir::ValueId source, const std::vector<int64_t>& strides, const std::vector<Indexed>& by, bool is_wrapped) {
  CUTAWAY_TRY(storable(l));
  const Shape s = shape(l, source);
  if (s.numel() == 0) return refusal("no elements to choose from");
  std::optional<TermId> address;
  for (const Indexed& i : by) {
    CUTAWAY_TRY_ASSIGN(TermId at, index_term(l, i.index, i.strides, s.sizes[i.dim], is_wrapped));
    const TermId far = l.terms.make(Op::mul, Held::i64, {at, l.terms.integer(s.strides[i.dim], Held::i64)});
    address = address ? l.terms.make(Op::add, Held::i64, {*address, far}) : far;
  }
  return l.terms.cast(l.reads.further(source, strides, *address), l.held());
}

Result<TermId> embedding(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(ir::ValueId weight, tensor(l, l.argument(0, "weight")));
  CUTAWAY_TRY_ASSIGN(ir::ValueId indices, tensor(l, l.argument(1, "indices")));
  const Shape w = shape(l, weight), i = shape(l, indices);
  if (w.sizes.size() != 2) return refusal("a table that has not two dimensions");
  std::vector<int64_t> along(i.sizes.size() + 1, 0), of_index = i.strides;
  along.back() = w.strides[1];
  of_index.push_back(0);
  return load_indexed(l, weight, along, {{0, indices, of_index}}, false);
}

Result<TermId> index_select(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  CUTAWAY_TRY_ASSIGN(ir::ValueId indices, tensor(l, l.argument(2, "index")));
  const Shape s = shape(l, source), i = shape(l, indices);
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 1, s.sizes.size()));
  if (i.sizes.size() != 1) return refusal("an index without dimensions");
  std::vector<int64_t> along = s.strides, of_index(s.sizes.size(), 0);
  along[d] = 0;
  of_index[d] = i.strides[0];
  return load_indexed(l, source, along, {{d, indices, of_index}}, false);
}

Result<TermId> gather(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  CUTAWAY_TRY_ASSIGN(ir::ValueId indices, tensor(l, l.argument(2, "index")));
  const Shape s = shape(l, source), i = shape(l, indices);
  if (s.sizes.empty() || i.sizes.size() != s.sizes.size()) return refusal("an index without dimensions");
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 1, s.sizes.size()));
  std::vector<int64_t> along = s.strides;
  along[d] = 0;
  return load_indexed(l, source, along, {{d, indices, i.strides}}, false);
}

Result<TermId> index_tensor(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  const ir::Argument* given = l.argument(1, "indices");
  if (!given || !given->as<ir::List>()) return refusal("indices that are no list");
  const Shape s = shape(l, source), r = result_shape(l);
  const auto& items = given->as<ir::List>()->items;
  if (items.size() > s.sizes.size()) return refusal("more indices than dimensions");
  // The indices are broadcast together; their dimensions stand where the first index is, or in front where others lie between.
  std::vector<size_t> indexed;
  size_t rank = 0;
  for (size_t d = 0; d < items.size(); ++d) {
    if (items[d].is_none()) continue;
    if (!l.is_tensor(&items[d])) return refusal("an index that is not a tensor");
    indexed.push_back(d);
    rank = std::max(rank, shape(l, items[d].as<ir::ValueRef>()->id).sizes.size());
  }
  if (indexed.empty()) return refusal("no index");
  const bool is_joined = indexed.back() - indexed.front() + 1 == indexed.size();
  const size_t at = is_joined ? indexed.front() : 0;
  if (r.sizes.size() != s.sizes.size() - indexed.size() + rank) return refusal("a result of another form");
  std::vector<int64_t> along(r.sizes.size(), 0);
  size_t kept = 0;
  for (size_t d = 0; d < s.sizes.size(); ++d) {
    if (d < items.size() && !items[d].is_none()) continue;
    const size_t place = d < at ? kept : kept + rank;
    if (r.sizes[place] != s.sizes[d]) return refusal("a result of another form");
    along[place] = s.strides[d];
    ++kept;
  }
  std::vector<Indexed> by;
  for (size_t d : indexed) {
    const ir::ValueId id = items[d].as<ir::ValueRef>()->id;
    const Shape i = shape(l, id);
    std::vector<int64_t> strides(r.sizes.size(), 0);
    for (size_t k = 0; k < i.sizes.size(); ++k) {
      const size_t place = at + rank - i.sizes.size() + k;
      if (i.sizes[k] != 1 && r.sizes[place] != i.sizes[k]) return refusal("a result of another form");
      if (i.sizes[k] != 1) strides[place] = i.strides[k];
    }
    by.push_back({d, id, std::move(strides)});
  }
  return load_indexed(l, source, along, by, true);
}

// --- parts of a result

/// The mask of a part of dimension `dim`, and how it may be cut.
TermId part(Lowering& l, size_t dim, int64_t first, int64_t past, int64_t block) { return l.reads.is_within(dim, first, past, block); }

struct Piece { ir::ValueId value; int64_t first, past; };
/// Pieces behind each other along a dimension. `is_new`: the pieces do not have it (stack).
Result<TermId> joined(Lowering& l, const std::vector<Piece>& pieces, size_t dim, bool is_new) {
  CUTAWAY_TRY(storable(l));
  if (pieces.empty() || pieces.size() > kMostParts) return refusal("too many parts");
  int64_t block = 0;
  for (const Piece& p : pieces) block = std::gcd(block, std::gcd(p.first, p.past));
  const size_t rank = result_shape(l).sizes.size();
  std::optional<TermId> whole;
  for (size_t i = pieces.size(); i-- > 0;) {
    const Piece& p = pieces[i];
    if (ir::is_floating(dtype(l, p.value)) && !ir::is_floating(l.result())) return refusal("a cast of floats to integers");
    const TermId mask = part(l, dim, p.first, p.past, block);
    TermId x;
    if (is_new) {
      std::vector<int64_t> strides = shape(l, p.value).strides;
      strides.insert(strides.begin() + static_cast<long>(dim), 0);
      x = l.reads.strided(p.value, strides, 0, mask);
    } else {
      std::vector<int64_t> first(rank, 0);
      first[dim] = p.first;
      x = l.reads.moved(p.value, first, mask);
    }
    x = l.terms.cast(x, l.held());
    whole = whole ? l.terms.make(Op::select, l.held(), {mask, x, *whole}) : x;
  }
  return *whole;
}

Result<TermId> cat(Lowering& l) {
  const ir::Argument* given = l.argument(0, "tensors");
  if (!given || !given->as<ir::List>()) return refusal("parts that are no list");
  const size_t rank = result_shape(l).sizes.size();
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 1, rank, 0));
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const ir::Argument& a : given->as<ir::List>()->items) {
    CUTAWAY_TRY_ASSIGN(ir::ValueId id, tensor(l, &a));
    const Shape s = shape(l, id);
    if (s.numel() == 0) continue;   // also one of size 0 without the other dimensions
    if (s.sizes.size() != rank) return refusal("parts of another form");
    pieces.push_back({id, at, at + s.sizes[d]});
    at += s.sizes[d];
  }
  if (at != result_shape(l).sizes[d]) return refusal("parts of another form");
  return joined(l, pieces, d, false);
}

Result<TermId> stack(Lowering& l) {
  const ir::Argument* given = l.argument(0, "tensors");
  if (!given || !given->as<ir::List>()) return refusal("parts that are no list");
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 1, result_shape(l).sizes.size(), 0));
  std::vector<Piece> pieces;
  for (const ir::Argument& a : given->as<ir::List>()->items) {
    CUTAWAY_TRY_ASSIGN(ir::ValueId id, tensor(l, &a));
    pieces.push_back({id, static_cast<int64_t>(pieces.size()), static_cast<int64_t>(pieces.size()) + 1});
  }
  return joined(l, pieces, d, true);
}

/// Where a slice lies in a dimension of that size; refuses steps.
struct Range { int64_t first, past; };
Result<Range> range(const Lowering& l, size_t position, int64_t size) {
  CUTAWAY_TRY_ASSIGN(int64_t first, integer(l, position, "start", 0));
  CUTAWAY_TRY_ASSIGN(int64_t past, integer(l, position + 1, "end", INT64_MAX));
  CUTAWAY_TRY_ASSIGN(int64_t step, integer(l, position + 2, "step", 1));
  if (step != 1) return refusal("a slice with steps");
  if (first < 0) first += size;
  if (past < 0) past += size;
  first = std::clamp<int64_t>(first, 0, size);
  past = std::clamp<int64_t>(past, first, size);
  return Range{first, past};
}

/// `inside` where the mask holds, else the other term.
TermId choose(Lowering& l, TermId mask, TermId inside, TermId outside) { return l.terms.make(Op::select, l.held(), {mask, inside, outside}); }

/// A tensor that fills a slice of the result: its element there, and the mask.
struct Filled { TermId value, mask; };
Result<Filled> slice_part(Lowering& l, ir::ValueId source, size_t d, Range r) {
  const Shape out = result_shape(l), in = shape(l, source);
  if (in.sizes.size() != out.sizes.size() || in.sizes[d] != r.past - r.first || in.numel() == 0) return refusal("a part of another form");
  for (size_t k = 0; k < in.sizes.size(); ++k)
    if (k != d && in.sizes[k] != out.sizes[k]) return refusal("a part of another form");
  const TermId mask = part(l, d, r.first, r.past, std::gcd(std::gcd(r.first, r.past), out.sizes[d]));
  std::vector<int64_t> first(out.sizes.size(), 0);
  first[d] = r.first;
  return Filled{l.terms.cast(l.reads.moved(source, first, mask), l.held()), mask};
}
Result<Filled> select_part(Lowering& l, ir::ValueId source, size_t d, int64_t index) {
  const Shape out = result_shape(l), in = shape(l, source);
  if (index < 0) index += out.sizes[d];
  if (in.sizes.size() + 1 != out.sizes.size() || index < 0 || index >= out.sizes[d]) return refusal("a part of another form");
  for (size_t k = 0; k < in.sizes.size(); ++k)
    if (in.sizes[k] != out.sizes[k < d ? k : k + 1]) return refusal("a part of another form");
  std::vector<int64_t> strides = in.strides;
  strides.insert(strides.begin() + static_cast<long>(d), 0);
  const TermId mask = part(l, d, index, index + 1, 1);
  return Filled{l.terms.cast(l.reads.strided(source, strides, 0, mask), l.held()), mask};
}

/// Gradients of views: zeros with the gradient in its place. A masked load is 0 elsewhere.
Result<TermId> slice_backward(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId gradient, tensor(l, l.argument(0, "grad_output")));
  const Shape out = result_shape(l);
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 2, out.sizes.size()));
  CUTAWAY_TRY_ASSIGN(Range r, range(l, 3, out.sizes[d]));
  CUTAWAY_TRY_ASSIGN(Filled part, slice_part(l, gradient, d, r));
  return choose(l, part.mask, part.value, l.terms.integer(0, l.held()));
}
Result<TermId> select_backward(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId gradient, tensor(l, l.argument(0, "grad_output")));
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 2, result_shape(l).sizes.size()));
  CUTAWAY_TRY_ASSIGN(int64_t index, integer(l, 3, "index"));
  CUTAWAY_TRY_ASSIGN(Filled part, select_part(l, gradient, d, index));
  return choose(l, part.mask, part.value, l.terms.integer(0, l.held()));
}
Result<TermId> slice_scatter(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(1, "src")));
  const Shape out = result_shape(l);
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 2, out.sizes.size(), 0));
  CUTAWAY_TRY_ASSIGN(Range r, range(l, 3, out.sizes[d]));
  if (dtype(l, source) != l.result()) return refusal("a part of another dtype");
  CUTAWAY_TRY_ASSIGN(Filled part, slice_part(l, source, d, r));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), l.held()));
  return choose(l, part.mask, part.value, x);
}
Result<TermId> select_scatter(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(1, "src")));
  CUTAWAY_TRY_ASSIGN(size_t d, dimension(l, 2, result_shape(l).sizes.size()));
  CUTAWAY_TRY_ASSIGN(int64_t index, integer(l, 3, "index"));
  if (dtype(l, source) != l.result()) return refusal("a part of another dtype");
  CUTAWAY_TRY_ASSIGN(Filled part, select_part(l, source, d, index));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), l.held()));
  return choose(l, part.mask, part.value, x);
}

Result<TermId> pad(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  const ir::Argument* given = l.argument(1, "pad");
  if (!given || !given->as<ir::List>()) return refusal("widths that are no list");
  const Shape in = shape(l, source), out = result_shape(l);
  const auto& widths = given->as<ir::List>()->items;
  const size_t rank = in.sizes.size();
  if (widths.size() % 2 != 0 || widths.size() / 2 > rank || in.numel() == 0) return refusal("widths of another form");
  std::vector<int64_t> first(rank, 0);
  TermId mask = l.terms.truth(true);
  for (size_t i = 0; i < widths.size() / 2; ++i) {
    const auto *before = widths[2 * i].as<int64_t>(), *behind = widths[2 * i + 1].as<int64_t>();
    if (!before || !behind) return refusal("widths that are not numbers");
    const size_t d = rank - 1 - i;
    if (out.sizes[d] != in.sizes[d] + *before + *behind) return refusal("widths of another form");
    first[d] = *before;
    const int64_t from = std::max<int64_t>(0, *before), past = std::min(out.sizes[d], *before + in.sizes[d]);
    if (from == 0 && past == out.sizes[d]) continue;
    const TermId own = part(l, d, from, std::max(from, past), std::gcd(std::gcd(from, past), out.sizes[d]));
    mask = l.terms[mask].op == Op::constant ? own : l.terms.make(Op::logical_and, Held::mask, {mask, own});
  }
  const ir::Argument zero(int64_t{0});
  const ir::Argument* value = l.argument(2, "value");
  CUTAWAY_TRY_ASSIGN(TermId fill, l.value(value ? value : &zero, l.held()));
  const TermId x = l.terms.cast(l.reads.moved(source, first, mask), l.held());
  if (l.terms[mask].op == Op::constant) return x;
  return choose(l, mask, x, l.terms.rounded(fill, l.result()));
}

Result<TermId> flip(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  const ir::Argument* dims = l.argument(1, "dims");
  if (!dims || !dims->as<ir::List>()) return refusal("dimensions that are no list");
  const Shape s = shape(l, source);
  std::vector<int64_t> strides = s.strides;
  int64_t offset = 0;
  for (const ir::Argument& a : dims->as<ir::List>()->items) {
    if (!a.as<int64_t>()) return refusal("a dimension that is not a number");
    const auto d = static_cast<size_t>(*a.as<int64_t>() < 0 ? *a.as<int64_t>() + static_cast<int64_t>(s.sizes.size()) : *a.as<int64_t>());
    if (d >= s.sizes.size()) return refusal("a dimension that is not there");
    offset += (s.sizes[d] - 1) * s.strides[d];
    strides[d] = -s.strides[d];
  }
  return l.terms.cast(l.reads.strided(source, strides, offset, std::nullopt), l.held());
}

/// Each dimension has a part that goes on and one that comes round: all combinations of them.
Result<TermId> roll(Lowering& l) {
  constexpr size_t kMostDims = 2;
  CUTAWAY_TRY(storable(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId source, tensor(l, l.argument(0, "self")));
  const ir::Argument *shifts = l.argument(1, "shifts"), *dims = l.argument(2, "dims");
  if (!shifts || !shifts->as<ir::List>() || !dims || !dims->as<ir::List>() || dims->as<ir::List>()->items.size() != shifts->as<ir::List>()->items.size()) return refusal("dimensions that are no list");
  const Shape s = shape(l, source);
  std::vector<int64_t> by(s.sizes.size(), 0);
  for (size_t i = 0; i < dims->as<ir::List>()->items.size(); ++i) {
    const auto *d = dims->as<ir::List>()->items[i].as<int64_t>(), *shift = shifts->as<ir::List>()->items[i].as<int64_t>();
    if (!d || !shift) return refusal("a dimension that is not a number");
    const auto k = static_cast<size_t>(*d < 0 ? *d + static_cast<int64_t>(s.sizes.size()) : *d);
    if (k >= s.sizes.size()) return refusal("a dimension that is not there");
    by[k] = (((by[k] + *shift) % s.sizes[k]) + s.sizes[k]) % s.sizes[k];
  }
  std::vector<size_t> moved;
  for (size_t k = 0; k < by.size(); ++k)
    if (by[k] != 0) moved.push_back(k);
  if (moved.empty() || moved.size() > kMostDims) return refusal("rolled over another number of dimensions");
  std::optional<TermId> whole;
  for (size_t choice = 0; choice < size_t{1} << moved.size(); ++choice) {
    std::vector<int64_t> first(by.size(), 0);
    TermId mask = l.terms.truth(true);
    for (size_t i = 0; i < moved.size(); ++i) {
      const size_t k = moved[i];
      const bool goes_on = choice >> i & 1;
      first[k] = goes_on ? by[k] : by[k] - s.sizes[k];
      const TermId own = goes_on ? part(l, k, by[k], s.sizes[k], std::gcd(by[k], s.sizes[k])) : part(l, k, 0, by[k], std::gcd(by[k], s.sizes[k]));
      mask = l.terms[mask].op == Op::constant ? own : l.terms.make(Op::logical_and, Held::mask, {mask, own});
    }
    const TermId x = l.terms.cast(l.reads.moved(source, first, mask), l.held());
    whole = whole ? choose(l, mask, x, *whole) : x;
  }
  return *whole;
}

template <bool is_lower> Result<TermId> triangle(Lowering& l) {
  CUTAWAY_TRY(storable(l));
  const size_t rank = result_shape(l).sizes.size();
  CUTAWAY_TRY_ASSIGN(int64_t diagonal, integer(l, 1, "diagonal", 0));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), l.held()));
  if (rank < 2) return refusal("a result of another form");
  std::vector<int64_t> strides(rank, 0);
  strides[rank - 1] = 1;
  strides[rank - 2] = -1;
  const TermId mask = l.terms.make(is_lower ? Op::le : Op::ge, Held::mask, {l.reads.position(strides), l.terms.integer(diagonal, Held::i64)});
  return choose(l, mask, x, l.terms.integer(0, l.held()));
}

Result<TermId> arange(Lowering& l) {
  const bool has_start = l.node.target != "aten.arange";
  if (l.result() != DType::i64 && l.result() != DType::i32) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  const ir::Argument* device = l.argument(SIZE_MAX, "device");
  if (device && !(device->as<ir::Device>() && (device->as<ir::Device>()->type == "cpu" || device->as<ir::Device>()->type == "cuda"))) return refusal("another device");
  int64_t start = 0, step = 1;
  if (has_start) {
    CUTAWAY_TRY_ASSIGN(start, integer(l, 0, "start"));
  }
  CUTAWAY_TRY(integer(l, has_start ? 1 : 0, "end"));
  if (l.node.target == "aten.arange.start_step") {
    CUTAWAY_TRY_ASSIGN(step, integer(l, 2, "step", 1));
  }
  TermId x = l.reads.position({1});
  if (step != 1) x = l.terms.make(Op::mul, Held::i64, {x, l.terms.integer(step, Held::i64)});
  if (start != 0) x = l.terms.make(Op::add, Held::i64, {x, l.terms.integer(start, Held::i64)});
  return l.terms.cast(x, l.held());
}

}  // namespace
}  // namespace indexing

std::vector<RuleRow> indexing_rules() {
  using namespace indexing;
  return {
      {"aten.embedding", embedding, true, true}, {"aten.index_select", index_select, true, true}, {"aten.gather", gather, true, true}, {"aten.index.Tensor", index_tensor, true, true},
      {"aten.cat", cat, true}, {"aten.stack", stack, true}, {"aten.constant_pad_nd", pad, true},
      {"aten.slice_backward", slice_backward, true}, {"aten.select_backward", select_backward, true}, {"aten.slice_scatter", slice_scatter, true}, {"aten.select_scatter", select_scatter, true},
      {"aten.flip", flip, true}, {"aten.roll", roll, true}, {"aten.tril", triangle<true>, true}, {"aten.triu", triangle<false>, true},
      {"aten.arange", arange, true}, {"aten.arange.start", arange, true}, {"aten.arange.start_step", arange, true},
  };
}

}  // namespace cutaway::codegen
