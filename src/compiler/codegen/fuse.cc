#include "compiler/codegen/fuse.h"

#include <algorithm>
#include <set>

#include "compiler/codegen/attention.h"
#include "compiler/codegen/convolution.h"
#include "compiler/codegen/draw.h"
#include "compiler/codegen/gathered.h"
#include "compiler/codegen/product.h"
#include "compiler/codegen/read_operands.h"
#include "compiler/codegen/scatter.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kLeastCut = 8;   ///< elements: below that a vector with a mask is as good
constexpr const char* kNotItsOwn = "an operand of this kernel is read at other places than the element's own";
constexpr size_t kMostNodes = 64;   ///< of a kernel: more values than registers would be held at once

int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (int64_t x : v) n *= x;
  return n;
}

/// The suffix products at which an access changes its stride.
void add_cuts(const std::vector<Piece>& access, std::set<int64_t>& cuts) {
  int64_t at = 1;
  for (size_t i = access.size(); i-- > 1;) cuts.insert(at *= access[i].size);
}

bool asks_for_wrong_layout(const ir::Node& n, size_t rank) {
  const auto is_wrong = [&](const ir::Argument& a) {
    const auto* m = a.as<ir::MemoryFormat>();
    return m && ((*m == ir::MemoryFormat::channels_last && rank != 4) || (*m == ir::MemoryFormat::channels_last_3d && rank != 5));
  };
  return std::ranges::any_of(n.args, is_wrong) || std::ranges::any_of(n.kwargs, [&](const auto& k) { return is_wrong(k.second); });
}

/// What one node asks of a space.
struct Wish {
  enum class Kind : uint8_t { none, pointwise, reduction, scan } kind = Kind::none;
  std::string reason;            ///< none: why
  std::vector<int64_t> sizes;    ///< pointwise: of the result; reduction: of the operand
  ir::Device device;
  Form form = Form::pointwise;
  int64_t inner = 0;             ///< reduction
  bool sums_blocks = false;      ///< reduction of the dimension before the last, of kBlockRows elements
  int64_t scan_rows = 0;         ///< scan down columns: of how many rows
  int64_t numel() const { return product(sizes); }
};

class Fuser {
 public:
  Fuser(const ir::Graph& graph, const Fuel& fuel) : graph_(graph), fuel_(fuel), nodes_(graph.body.nodes), out_(graph), from_(out_.from), needs_(graph.body.nodes.size()) {}

  Fusion run() {
    out_.group_of.assign(nodes_.size(), -1);
    out_.is_free.assign(nodes_.size(), false);
    level_.assign(graph_.values.size(), Level::element);
    leaves_.resize(nodes_.size());
    find_effects();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto use = [&](ir::ValueId id) {
        if (const int64_t at = from_.producer[from_.root[id].value].node; at >= 0) needs_[i].push_back(static_cast<size_t>(at));
      };
      for_each_use_inside(nodes_[i], use);
      if (previous_effect_[i] >= 0) needs_[i].push_back(static_cast<size_t>(previous_effect_[i]));
      std::ranges::sort(needs_[i]);
      needs_[i].erase(std::ranges::unique(needs_[i]).begin(), needs_[i].end());
    }
    find_inlined();
    for (size_t i = 0; i < nodes_.size(); ++i) place(i);
    if (fuel_.epilogues)
      for (size_t i = 0; i < nodes_.size(); ++i) find_epilogue(i);
    sort_units();
    return std::move(out_);
  }

 private:
  void place(size_t i) {
    const ir::Node& n = nodes_[i];
    if (view_of(graph_, n)) { out_.is_free[i] = true; return; }
    if (out_.is_free[i]) return;   // worked out where it is wanted
    const Wish wish = wish_of(n);
    if (wish.kind == Wish::Kind::none) {
      std::string reason;
      if (product_of(graph_, from_, n, &reason)) out_.decisions.push_back({"product", name_of(n), n.target, true, ""});
      else if (conv_gradient_of(graph_, from_, n) || attention_of(graph_, from_, n)) out_.decisions.push_back({"product", name_of(n), n.target, true, ""});
      else if (scatter_of(graph_, from_, n)) out_.decisions.push_back({"scatter", name_of(n), n.target, true, ""});
      else if (draw_of(graph_, n)) out_.decisions.push_back({"random", name_of(n), n.target, true, ""});
      else out_.decisions.push_back({"call", name_of(n), n.target, true, reason.empty() ? wish.reason : reason});
      return;
    }
    if (wish.kind == Wish::Kind::pointwise && operands(n).empty()) { out_.is_free[i] = true; return; }   // a constant
    int32_t home = -1;
    std::set<int32_t, std::greater<>> candidates;   // the latest first
    for (ir::ValueId value : operands(n))
      if (const int32_t g = group_of_value(value); g >= 0) candidates.insert(g);
    if ((candidates.empty() && wish.sums_blocks) || shares_windows(n)) add_siblings(n, wish, candidates);
    for (int32_t g : candidates) {
      const ir::Node& last = nodes_[out_.groups[g].nodes.back()];
      Decision d{home < 0 ? "fuse" : "merge", name_of(n) + " with " + name_of(last), n.target + " into " + last.target, false, ""};
      d.reason = home < 0 ? why_not_join(i, n, wish, g) : why_not_merge(home, g);
      if (d.reason.empty() && fuel_.without.contains(d.name)) d.reason = "switched off";
      if (d.reason.empty() && fuel_.fusions-- <= 0) d.reason = "the fuel is used up";
      d.done = d.reason.empty();
      if (d.done && home < 0) join(i, n, wish, home = g);
      else if (d.done) merge(home, g);
      out_.decisions.push_back(std::move(d));
    }
    if (home < 0) {
      Group g;
      g.total = wish.numel();
      g.device = wish.device;
      out_.groups.push_back(std::move(g));
      join(i, n, wish, static_cast<int32_t>(out_.groups.size()) - 1);
    }
  }

  /// Places beside the values of a pool: the same loads.
  static bool shares_windows(const ir::Node& n) { return n.target == "cutaway.max_pool2d_places"; }

  /// A sum of blocks, or the places of a pool, read all of their operand: where another kernel reads the same, once is enough.
  void add_siblings(const ir::Node& n, const Wish& wish, std::set<int32_t, std::greater<>>& candidates) const {
    const ir::ValueId source = from_.root[n.args[0].as<ir::ValueRef>()->id].value;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      const Group& group = out_.groups[g];
      if (group.total != wish.numel()) continue;
      for (size_t node : group.nodes)
        for (ir::ValueId value : operands(nodes_[node]))
          if (from_.root[value].value == source) candidates.insert(static_cast<int32_t>(g));
    }
  }

  /// What the node's rule needs is asked before any kernel is made: nothing fails later.
  Wish wish_of(const ir::Node& n) const {
    Wish w;
    if (n.kind != ir::Node::Kind::op) { w.reason = "not an operator"; return w; }
    if (n.results.size() != 1 || n.returns.size() != 1 || n.returns[0] != ir::Node::kSingle) { w.reason = "no rule for " + n.target; return w; }
    const auto result = shape_of(graph_.value(n.results[0]).type);
    if (!result || !held_for(graph_.value(n.results[0]).type.tensor.dtype)) { w.reason = "a result that is not a plain tensor of a common dtype"; return w; }
    for (ir::ValueId value : operands(n)) {
      const auto shape = shape_of(graph_.value(value).type);
      if (!shape || !held_for(graph_.value(value).type.tensor.dtype)) { w.reason = "an operand that is not a plain tensor of a common dtype"; return w; }
      if (graph_.value(value).type.tensor.device != device_of(n)) { w.reason = "values on several devices"; return w; }
    }
    if (gathered_of(graph_, n)) { w.reason = "a copy of inputs, which one kernel makes for all"; return w; }
    if (asks_for_wrong_layout(n, result->sizes.size())) { w.reason = "a layout of another number of dimensions, for which torch raises"; return w; }
    w.device = device_of(n);
    if (const auto reduction = reduction_of(graph_, n)) return wish_of_reduction(n, *reduction);
    const RuleRow* row = find_rule(n.target);
    if (!row) { w.reason = "no rule for " + n.target; return w; }
    if (row->moves && fuel_.serves_every_size && !row->is_by_index) { w.reason = "its places are numbers of one size"; return w; }
    if (result->numel() == 0) { w.reason = "no elements"; return w; }
    std::vector<Term> scratch;
    if (const auto made = read_all(n, scratch, nullptr, nullptr); !made.ok()) { w.reason = made.error().what; return w; }
    if (own_overlap(*result)) { w.reason = "a result whose elements share memory"; return w; }
    w.sizes = result->sizes;
    if (row->scans) return wish_of_scan(n, std::move(w));
    w.kind = Wish::Kind::pointwise;
    return w;
  }

  /// Rows are walked in order, from their first element on.
  Wish wish_of_scan(const ir::Node& n, Wish w) const {
    const auto rank = static_cast<int64_t>(w.sizes.size());
    const ir::Argument* given = n.args.size() > 1 ? &n.args[1] : nullptr;
    for (const auto& [key, a] : n.kwargs)
      if (key == "dim") given = &a;
    const auto* dim = given ? given->as<int64_t>() : nullptr;
    if (w.device.type != "cpu") { w.reason = "no CUDA text for " + n.target; return w; }
    if (!dim || rank == 0) { w.reason = "a scan of a single element"; return w; }
    if (*dim != -1 && *dim != rank - 1) return wish_of_column_scan(std::move(w), static_cast<size_t>(*dim < 0 ? *dim + rank : *dim));
    w.inner = w.sizes.back();
    if (w.inner < 2) { w.reason = "a scan of single elements"; return w; }
    if (w.numel() / w.inner < 4 && w.inner > 16384) { w.reason = "few rows that are long: a thread would have most of the work"; return w; }
    w.kind = Wish::Kind::scan;
    w.form = Form::rows;
    return w;
  }

  /// Over another dimension than the last: vectors of columns go down together.
  static Wish wish_of_column_scan(Wish w, size_t dim) {
    constexpr int64_t kFewestColumns = 8;
    w.inner = 1;
    for (size_t d = dim + 1; d < w.sizes.size(); ++d) w.inner *= w.sizes[d];
    w.scan_rows = w.sizes[dim];
    if (w.scan_rows < 2) { w.reason = "a scan of single elements"; return w; }
    if (w.inner < kFewestColumns) { w.reason = "a scan down few columns"; return w; }
    w.kind = Wish::Kind::scan;
    w.form = Form::columns;
    return w;
  }

  const ir::Device& device_of(const ir::Node& n) const { return graph_.value(n.results[0]).type.tensor.device; }

  /// Runs the node's rule; what it reads goes into `leaves`, where it would like cuts into `preferred`.
  base::Result<TermId> read_all(const ir::Node& n, std::vector<Term>& into, std::vector<Leaf>* leaves, std::set<int64_t>* preferred) const {
    Terms terms(into);
    uint32_t number = 0;
    const OperandReads::To to{[&](const Leaf& leaf) {
                                if (leaves) leaves->push_back(leaf);
                                if (leaf.op == Op::position) return terms.access(Op::position, Held::i64, number++, ir::DType::i64, {leaf.strides, leaf.offset}, Level::element, {});
                                const ir::DType dtype = graph_.value(leaf.value).type.tensor.dtype;
                                return terms.access(leaf.op, *held_for(dtype), leaf.value, dtype, {leaf.strides, leaf.offset}, Level::element, leaf.operands);
                              },
                              [&](int64_t elements) {
                                if (preferred && elements >= kLeastCut) preferred->insert(elements);
                                return false;
                              }};
    const Shape result = *shape_of(graph_.value(n.results[0]).type);
    OperandReads reads(graph_, from_, out_.is_free, terms, result.sizes, to);
    return reads.lower(n);
  }

  struct Places { std::vector<Leaf> leaves; std::set<int64_t> preferred; };
  const Places& places(const ir::Node& n) {
    auto& known = leaves_[static_cast<size_t>(&n - nodes_.data())];
    if (known) return *known;
    known.emplace();
    if (reduction_of(graph_, n)) {
      const ir::ValueId operand = n.args[0].as<ir::ValueRef>()->id;
      std::vector<Term> scratch;
      Terms terms(scratch);
      const OperandReads::To to{[&](const Leaf& leaf) { known->leaves.push_back(leaf); return terms.integer(0, Held::i64); }, [](int64_t) { return false; }};
      OperandReads(graph_, from_, out_.is_free, terms, shape_of(graph_.value(operand).type)->sizes, to).element(operand);
    } else {
      std::vector<Term> scratch;
      (void)read_all(n, scratch, &known->leaves, &known->preferred);
    }
    return *known;
  }

  /// Cheap nodes that only a node wants which reads at other places than the element's own: they are worked out there, and never stored.
  void find_inlined() {
    std::vector<int> uses(graph_.values.size(), 0);
    std::vector<size_t> user(graph_.values.size(), 0);
    for (size_t i = 0; i < nodes_.size(); ++i) for_each_use_inside(nodes_[i], [&](ir::ValueId id) { ++uses[id]; user[id] = i; });
    for (const ir::Argument& a : graph_.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { uses[id] += 2; });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& n = nodes_[i];
      if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || uses[n.results[0]] != 1 || !takes_inlined(nodes_[user[n.results[0]]]) || operands(n).empty() || view_of(graph_, n)) continue;
      const RuleRow* row = find_rule(n.target);
      if (!row || row->moves || wish_of(n).kind != Wish::Kind::pointwise || wish_of(nodes_[user[n.results[0]]]).kind != Wish::Kind::pointwise) continue;
      std::vector<Term> terms;
      if (!read_all(n, terms, nullptr, nullptr).ok()) continue;
      const auto steps = std::ranges::count_if(terms, [](const Term& t) { return !has_access(t.op) && t.op != Op::constant; });
      if (steps > 3 || std::ranges::any_of(terms, [](const Term& t) { return is_costly(t.op); })) continue;
      out_.is_free[i] = true;
    }
  }
  static bool takes_inlined(const ir::Node& n) { return n.target == "aten.cat" || n.target == "aten.constant_pad_nd" || n.target == "aten.slice_backward"; }

  Wish wish_of_reduction(const ir::Node& n, const Reduction& r) const {
    Wish w;
    w.device = device_of(n);
    const Shape from = *shape_of(graph_.value(n.args[0].as<ir::ValueRef>()->id).type);
    w.sizes = from.sizes;
    if (from.numel() == 0) { w.reason = "no elements"; return w; }
    std::vector<bool> reduced(from.sizes.size(), false);
    for (int64_t d : r.dims) reduced[static_cast<size_t>(d)] = true;
    int64_t inside = 1, outside = 1;
    bool trailing = true, leading = true, seen_kept = false, seen_reduced = false;
    for (size_t d = from.sizes.size(); d-- > 0;) {
      if (from.sizes[d] == 1) continue;
      (reduced[d] ? inside : outside) *= from.sizes[d];
      if (reduced[d] && seen_kept) trailing = false;
      if (!reduced[d] && seen_reduced) leading = false;
      (reduced[d] ? seen_reduced : seen_kept) = true;
    }
    if (inside == 1) { w.reason = "a reduction of single elements"; return w; }
    w.kind = Wish::Kind::reduction;
    if (trailing) {
      w.form = Form::rows;
      w.inner = inside;
      if (w.device.type == "cuda" ? outside < 32 && inside > 65536 : outside < 4 && inside > 16384) { w.kind = Wish::Kind::none; w.reason = "few rows that are long: a thread would have most of the work"; }
    } else if (leading && r.op == Op::sum) {
      w.form = Form::columns;
      w.inner = outside;
      if (outside < 32) { w.kind = Wish::Kind::none; w.reason = "too few columns"; }
    } else if (is_of_blocks(n, from, r)) {
      w.form = Form::rows;
      w.inner = from.sizes[2];
      w.sums_blocks = true;
    } else {
      w.kind = Wish::Kind::none;
      w.reason = "reduced dimensions that are neither the last nor the first ones";
    }
    return w;
  }

  /// [blocks, kBlockRows, columns] to [blocks, columns]: what the rewrite "sum of blocks" makes.
  bool is_of_blocks(const ir::Node& n, const Shape& from, const Reduction& r) const {
    const ir::TensorType& result = graph_.value(n.results[0]).type.tensor;
    return from.sizes.size() == 3 && from.sizes[1] == kBlockRows && r.dims == std::vector<int64_t>{1} && r.op == Op::sum && !r.is_mean && result.device.type == "cpu" && !fuel_.serves_every_size &&
           result.sizes.size() == 2 && result.is_contiguous() && (result.dtype == ir::DType::f32 || result.dtype == ir::DType::f64) && graph_.value(n.args[0].as<ir::ValueRef>()->id).type.tensor.dtype == result.dtype;
  }

  static bool own_overlap(const Shape& s) {
    for (size_t i = 0; i < s.sizes.size(); ++i)
      if (s.sizes[i] > 1 && s.strides[i] == 0) return true;
    return false;
  }

  /// Tensors that it reads.
  static std::vector<ir::ValueId> operands(const ir::Node& n) {
    std::vector<ir::ValueId> found;
    ir::for_each_use(n, [&](ir::ValueId id) { found.push_back(id); });
    return found;
  }

  int32_t group_of_value(ir::ValueId id) const {
    const int64_t at = from_.producer[from_.root[id].value].node;
    return at < 0 ? -1 : out_.group_of[static_cast<size_t>(at)];
  }

  std::string why_not_join(size_t i, const ir::Node& n, const Wish& wish, int32_t number) {
    const Group& g = out_.groups[number];
    if (g.device != wish.device) return "values on another device";
    if (g.nodes.size() >= kMostNodes) return "the kernel is large enough";
    Group grown = g;
    if (std::string why = fits(n, wish, grown, number); !why.empty()) return why;
    for (ir::ValueId value : operands(n)) {
      const Root& root = from_.root[value];
      if (const int64_t u = unit_of_value(root.value); u >= 0 && u != group_unit(number) && reaches(u, group_unit(number))) return "a cycle: an operand needs this kernel's results";
    }
    if (auto previous = previous_effect_[i]; previous >= 0 && reaches(unit_of_node(static_cast<size_t>(previous)), group_unit(number))) return "a cycle through the order of random numbers";
    return {};
  }

  /// Empty when the node's space is the group's; the group then has what it must have for it.
  std::string fits(const ir::Node& n, const Wish& wish, Group& g, int32_t number) {
    Level level = Level::element;
    if (wish.kind == Wish::Kind::reduction) {
      if (wish.numel() != g.total) return "another number of elements";
      if (g.scan_rows || (g.inner && (g.form != wish.form || g.inner != wish.inner))) return "rows or columns of another length";
      g.form = wish.form;
      g.inner = wish.inner;
      g.sums_blocks = g.sums_blocks || wish.sums_blocks;
      level = wish.form == Form::rows && !wish.sums_blocks ? Level::row : Level::column;
    } else if (wish.kind == Wish::Kind::scan) {
      if (wish.numel() != g.total) return "another number of elements";
      if (g.inner && (g.form != wish.form || g.inner != wish.inner || g.scan_rows != wish.scan_rows)) return "rows or columns of another length";
      g.form = wish.form;
      g.inner = wish.inner;
      g.scan_rows = wish.scan_rows;
    } else if (wish.numel() != g.total) {
      if (g.form != Form::rows || wish.numel() != g.rows()) return "another number of elements";
      level = Level::row;
    }
    for (const Leaf& leaf : places(n).leaves) {
      if (leaf.kind == Leaf::Kind::position || group_of_value(leaf.value) != number) continue;
      if (leaf.kind == Leaf::Kind::memory) return kNotItsOwn;
      if (std::string why = fits_inside(wish, g, level, leaf.value); !why.empty()) return why;
    }
    std::set<int64_t> cuts(g.cuts.begin(), g.cuts.end());
    if (g.inner) cuts.insert(g.inner);
    if (g.sums_blocks) cuts.insert(g.inner * kBlockRows);
    add_node_cuts(n, wish, g, level, number, cuts);
    cuts.erase(1);
    cuts.erase(g.total);
    int64_t before = 1;
    for (int64_t c : cuts) {
      if (c % before != 0 || g.total % c != 0) return "dimensions that do not divide each other";
      if (g.form == Form::rows && c < g.inner) return "a row whose elements do not lie at even distances";
      if (g.sums_blocks && c > g.inner && c < g.inner * kBlockRows) return "blocks of rows that do not lie at even distances";
      if (g.form == Form::columns && c < g.inner) return "columns that do not lie at even distances";
      before = c;
    }
    g.cuts.assign(cuts.begin(), cuts.end());
    for (int64_t c : places(n).preferred) g.preferred.push_back(level == Level::row ? c * g.inner : c);
    return {};
  }

  /// A value that the kernel itself computes must be at hand for the same element.
  std::string fits_inside(const Wish& wish, const Group& g, Level level, ir::ValueId value) const {
    const Root& root = from_.root[value];
    if (!root.is_linear) return "an operand of this kernel is looked at in another order";
    const Level has = level_[root.value];
    if (has == Level::column) return "a column's sum is known only at the end";
    const std::vector<int64_t> sizes = shape_of(graph_.value(value).type)->sizes;
    if (has == Level::element) {
      if (root.has_expand) return "an operand of this kernel is repeated";
      if (level != Level::element && wish.kind != Wish::Kind::reduction) return "an element where a row's value is wanted";
      return product(sizes) == g.total ? "" : "an operand of this kernel is repeated";
    }
    // A row's value: its sizes must be those of the rows, and repeat over the elements of the row alone.
    if (wish.kind == Wish::Kind::reduction) return "a row's value is reduced again";
    if (level == Level::row) return product(sizes) == g.rows() && !root.has_expand ? "" : "an operand of this kernel is repeated";
    if (!g.inner) return "a row's value without rows";
    if (root.has_expand && (root.expanded_to != sizes || product(root.expanded_from) != g.rows() || !repeats_rows(root.expanded_from, sizes, g))) return "a row's value is repeated in another direction";
    if (product(sizes) == wish.numel()) return root.has_expand ? "" : "a row's value where an element is wanted";
    return repeats_rows(sizes, wish.sizes, g) ? "" : "a row's value is repeated in another direction";
  }

  /// `small` is broadcast to `large` along exactly the elements of rows.
  static bool repeats_rows(const std::vector<int64_t>& small, const std::vector<int64_t>& large, const Group& g) {
    if (small.size() > large.size()) return false;
    const size_t extra = large.size() - small.size();
    int64_t inner = 1;
    size_t at = large.size();
    while (at > 0 && inner < g.inner) inner *= large[--at];
    if (inner != g.inner) return false;
    for (size_t d = 0; d < large.size(); ++d) {
      const int64_t s = d < extra ? 1 : small[d - extra];
      if (s != (d < at ? large[d] : 1)) return false;
    }
    return true;
  }

  void add_node_cuts(const ir::Node& n, const Wish& wish, const Group& g, Level level, int32_t number, std::set<int64_t>& cuts) {
    const auto add = [&](const Shape& s, const std::vector<int64_t>& space, Level at) {
      std::set<int64_t> own;
      add_cuts(pieces(s.sizes, s.strides, space), own);
      for (int64_t c : own) cuts.insert(at == Level::row ? c * g.inner : c);
    };
    for (const Leaf& leaf : places(n).leaves)
      if (leaf.kind == Leaf::Kind::position || group_of_value(leaf.value) != number) add({leaf.sizes, leaf.strides}, leaf.space, level == Level::column || wish.kind == Wish::Kind::reduction ? Level::element : level);
    if (wish.sums_blocks) return;   // its result lies row after row
    const Shape result = *shape_of(graph_.value(n.results[0]).type);
    add(result, result.sizes, level);
  }

  void join(size_t i, const ir::Node& n, const Wish& wish, int32_t number) {
    Group& g = out_.groups[number];
    Group grown = g;
    if (std::string why = fits(n, wish, grown, number); why.empty()) {
      g = std::move(grown);
    } else {   // alone it cannot be a kernel either
      out_.decisions.push_back({"call", name_of(n), n.target, true, why});
      if (g.nodes.empty()) out_.groups.pop_back();
      return;
    }
    g.nodes.push_back(i);
    out_.group_of[i] = number;
    level_[n.results[0]] = wish.kind == Wish::Kind::reduction ? (g.form == Form::rows && !wish.sums_blocks ? Level::row : Level::column) : wish.numel() == g.total ? Level::element : Level::row;
  }

  std::string why_not_merge(int32_t a, int32_t b) {
    const Group &x = out_.groups[a], &y = out_.groups[b];
    if (x.nodes.size() + y.nodes.size() > kMostNodes) return "the kernel is large enough";
    if (x.device != y.device) return "values on another device";
    if (x.total != y.total) return "another number of elements";
    if (x.inner && y.inner && (x.inner != y.inner || x.form != y.form || x.scan_rows != y.scan_rows)) return "rows or columns of another length";
    const int64_t inner = std::max(x.inner, y.inner);
    const Form form = x.inner ? x.form : y.form;
    std::set<int64_t> cuts(x.cuts.begin(), x.cuts.end());
    cuts.insert(y.cuts.begin(), y.cuts.end());
    if (inner && inner != x.total) cuts.insert(inner);
    if ((x.sums_blocks || y.sums_blocks) && inner * kBlockRows != x.total) cuts.insert(inner * kBlockRows);
    int64_t before = 1;
    for (int64_t c : cuts) {
      if (c % before != 0) return "dimensions that do not divide each other";
      if (form != Form::pointwise && c < inner) return "a row whose elements do not lie at even distances";
      if ((x.sums_blocks || y.sums_blocks) && c > inner && c < inner * kBlockRows) return "blocks of rows that do not lie at even distances";
      before = c;
    }
    // Values of one that the other reads must fit as if they had been there at first.
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      for (size_t node : out_.groups[to].nodes) {
        for (const Leaf& leaf : places(nodes_[node]).leaves) {
          const ir::ValueId value = leaf.value;
          if (leaf.kind == Leaf::Kind::position || group_of_value(value) != from) continue;
          if (leaf.kind == Leaf::Kind::memory) return kNotItsOwn;
          Group whole = x;
          whole.inner = inner;
          whole.form = form;
          if (std::string why = fits_inside(wish_of(nodes_[node]), whole, level_[nodes_[node].results[0]], value); !why.empty()) return why;
        }
      }
    }
    if (path_outside(group_unit(a), group_unit(b)) || path_outside(group_unit(b), group_unit(a))) return "a cycle: something between them needs one and feeds the other";
    return {};
  }

  /// What is computed from a product's result alone, element by element, is computed while a tile of it is still in cache.
  void find_epilogue(size_t i) {
    const ir::Node& n = nodes_[i];
    if (unit_of_node(i) != static_cast<int64_t>(i)) return;
    const auto product = product_of(graph_, from_, n);
    if (!product) return;
    std::set<int32_t> readers;
    for (size_t j = i + 1; j < nodes_.size(); ++j)
      if (const int32_t g = out_.group_of[j]; g >= 0)
        for (ir::ValueId value : operands(nodes_[j]))
          if (from_.root[value].value == n.results[0]) readers.insert(g);
    for (int32_t number : readers) {
      const ir::Node& first = nodes_[out_.groups[number].nodes.front()];
      Decision d{"fuse", name_of(first) + " with " + name_of(n), first.target + " into " + n.target, false, ""};
      Group grown = out_.groups[number];
      d.reason = why_no_epilogue(i, *product, number, grown);
      if (d.reason.empty() && fuel_.without.contains(d.name)) d.reason = "switched off";
      if (d.reason.empty() && fuel_.fusions-- <= 0) d.reason = "the fuel is used up";
      d.done = d.reason.empty();
      out_.decisions.push_back(d);
      if (!d.done) continue;
      out_.groups[number] = std::move(grown);
      out_.group_of[i] = number;
      return;
    }
  }

  std::string why_no_epilogue(size_t i, const Product& p, int32_t number, Group& g) const {
    constexpr int64_t kFewestColumns = 8;
    if (g.product >= 0) return "it is the epilogue of another product";
    if (g.device.type != "cpu") return "not on the CPU";
    if (g.form != Form::pointwise) return "rows are reduced: a tile of the product has parts of them";
    if (g.total != p.batch * p.m * p.n) return "another number of elements";
    if (p.n < kFewestColumns) return "too few columns";
    if ((p.c.row != p.n && p.m > 1) || (p.c.batch != p.m * p.n && p.batch > 1)) return "the product's result has gaps";
    const auto moves = [&](size_t node) { const RuleRow* row = find_rule(nodes_[node].target); return row && row->moves; };
    for (size_t node : g.nodes) {
      if (moves(node)) return "it reads at other places than the element's own";
      for (ir::ValueId value : operands(nodes_[node])) {
        const Root& root = from_.root[value];
        if (const int64_t at = from_.producer[root.value].node; at >= 0 && out_.is_free[static_cast<size_t>(at)] && moves(static_cast<size_t>(at))) return "it reads at other places than the element's own";
        if (root.value != nodes_[i].results[0]) continue;
        if (!root.is_linear || root.has_expand || root.offset != 0 || product(shape_of(graph_.value(value).type)->sizes) != g.total) return "the product's result is looked at in another order";
        if (product(shape_of(graph_.value(nodes_[node].results[0]).type)->sizes) != g.total) return "the product's result is repeated";
      }
    }
    std::set<int64_t> cuts(g.cuts.begin(), g.cuts.end());
    if (p.n != g.total) cuts.insert(p.n);
    int64_t before = 1;
    for (int64_t c : cuts) {
      if (c < p.n || c % before != 0) return "a row of the product's result does not lie at even distances";
      before = c;
    }
    if (path_outside(group_unit(number), static_cast<int64_t>(i))) return "a cycle: something between them needs one and feeds the other";
    g.product = static_cast<int64_t>(i);
    g.cuts.assign(cuts.begin(), cuts.end());
    g.nodes.push_back(i);
    std::ranges::sort(g.nodes);
    return {};
  }

  void merge(int32_t into, int32_t from) {
    Group &x = out_.groups[into], &y = out_.groups[from];
    if (!x.inner) { x.inner = y.inner; x.form = y.form; x.scan_rows = y.scan_rows; }
    std::set<int64_t> cuts(x.cuts.begin(), x.cuts.end());
    cuts.insert(y.cuts.begin(), y.cuts.end());
    if (x.inner && x.inner != x.total) cuts.insert(x.inner);
    x.sums_blocks = x.sums_blocks || y.sums_blocks;
    if (x.sums_blocks && x.inner * kBlockRows != x.total) cuts.insert(x.inner * kBlockRows);
    x.cuts.assign(cuts.begin(), cuts.end());
    x.preferred.insert(x.preferred.end(), y.preferred.begin(), y.preferred.end());
    for (size_t n : y.nodes) out_.group_of[n] = into;
    x.nodes.insert(x.nodes.end(), y.nodes.begin(), y.nodes.end());
    std::ranges::sort(x.nodes);
    y.nodes.clear();   // an empty group is none
  }

  // Units: what runs as one. A group, or a node that is called.
  int64_t group_unit(int32_t g) const { return static_cast<int64_t>(nodes_.size()) + g; }
  int64_t unit_of_node(size_t i) const { return out_.group_of[i] >= 0 ? group_unit(out_.group_of[i]) : static_cast<int64_t>(i); }
  int64_t unit_of_value(ir::ValueId id) const {
    const int64_t at = from_.producer[id].node;
    return at < 0 ? -1 : unit_of_node(static_cast<size_t>(at));
  }

  template <class F> void for_each_dependency(int64_t unit, F&& f) const {
    const auto of_node = [&](size_t i) {
      for (size_t need : needs_[i])
        if (const int64_t u = unit_of_node(need); u != unit) f(u);
    };
    if (unit < static_cast<int64_t>(nodes_.size())) of_node(static_cast<size_t>(unit));
    else for (size_t i : out_.groups[static_cast<size_t>(unit) - nodes_.size()].nodes) of_node(i);
  }
  /// Whether `unit` needs `target`, itself included.
  bool reaches(int64_t unit, int64_t target) const {
    std::vector<bool> seen(nodes_.size() + out_.groups.size(), false);
    std::vector<int64_t> todo{unit};
    while (!todo.empty()) {
      const int64_t u = todo.back();
      todo.pop_back();
      if (u == target) return true;
      if (seen[static_cast<size_t>(u)]) continue;
      seen[static_cast<size_t>(u)] = true;
      for_each_dependency(u, [&](int64_t d) { todo.push_back(d); });
    }
    return false;
  }
  /// Whether `from` needs `to` through something else.
  bool path_outside(int64_t from, int64_t to) const {
    bool found = false;
    for_each_dependency(from, [&](int64_t d) { found = found || (d != to && reaches(d, to)); });
    return found;
  }

  /// Nodes that draw random numbers or write stay in their order.
  void find_effects() {
    previous_effect_.assign(nodes_.size(), -1);
    int64_t previous = -1;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!ir::has_effects(nodes_[i]) && !is_foreign(nodes_[i])) continue;
      previous_effect_[i] = previous;
      previous = static_cast<int64_t>(i);
    }
  }
  /// Who knows what operators of others do.
  static bool is_foreign(const ir::Node& n) { return !n.target.starts_with("aten.") && !n.target.starts_with("sym.") && !find_rule(n.target); }

  void sort_units() {
    std::vector<bool> done(nodes_.size() + out_.groups.size(), false);
    const auto visit = [&](auto&& self, int64_t unit) -> void {
      if (done[static_cast<size_t>(unit)]) return;
      done[static_cast<size_t>(unit)] = true;
      for_each_dependency_in_order(unit, [&](int64_t d) { self(self, d); });
      out_.order.push_back(static_cast<size_t>(unit));
    };
    for (size_t i = 0; i < nodes_.size(); ++i) visit(visit, unit_of_node(i));
  }
  /// Views too: they stay nodes of their own where something else than a kernel wants them.
  template <class F> void for_each_dependency_in_order(int64_t unit, F&& f) const {
    for_each_dependency(unit, f);
    const auto of_node = [&](size_t i) {
      for_each_use_inside(nodes_[i], [&](ir::ValueId id) {
        if (const int64_t at = from_.producer[id].node; at >= 0 && unit_of_node(static_cast<size_t>(at)) != unit) f(unit_of_node(static_cast<size_t>(at)));
      });
    };
    if (unit < static_cast<int64_t>(nodes_.size())) of_node(static_cast<size_t>(unit));
  }

  std::string name_of(const ir::Node& n) const { return n.results.empty() ? n.target : "%" + graph_.value(n.results[0]).name; }

  const ir::Graph& graph_;
  Fuel fuel_;
  const std::vector<ir::Node>& nodes_;
  Fusion out_;
  const Origins& from_;                     ///< out_'s
  std::vector<std::vector<size_t>> needs_;  ///< by node: those whose results it reads, through views, and the one that must be before it
  std::vector<Level> level_;                ///< by value, of those that a group computes
  std::vector<int64_t> previous_effect_;
  std::vector<std::optional<Places>> leaves_;   ///< by node, once asked for
};

}  // namespace

Fusion fuse(const ir::Graph& graph, const Fuel& fuel) { return Fuser(graph, fuel).run(); }

std::vector<Piece> pieces(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const std::vector<int64_t>& space) {
  std::vector<Piece> found;
  const size_t extra = space.size() - sizes.size();
  for (size_t d = 0; d < space.size(); ++d) {
    if (space[d] == 1) continue;
    const int64_t stride = d < extra || sizes[d - extra] == 1 ? 0 : strides[d - extra];
    if (!found.empty() && found.back().stride == stride * space[d]) found.back() = {found.back().size * space[d], stride};
    else found.push_back({space[d], stride});
  }
  return found;
}

Origins::Origins(const ir::Graph& graph) : producer(graph.values.size()), root(graph.values.size()) {
  for (ir::ValueId id = 0; id < graph.values.size(); ++id) root[id].value = id;
  for (size_t i = 0; i < graph.body.nodes.size(); ++i) {
    const ir::Node& n = graph.body.nodes[i];
    for (size_t r = 0; r < n.results.size(); ++r) producer[n.results[r]] = {static_cast<int64_t>(i), r};
    const auto view = view_of(graph, n);
    if (!view) continue;
    for (size_t r = 0; r < n.results.size(); ++r) {
      Root found = root[view->base];   // views come after what they look at
      found.offset += view->offsets[r];
      if (view->kind == View::Kind::strided) found.is_linear = false;
      if (view->kind == View::Kind::expand) {
        std::vector<int64_t> from = shape_of(graph.value(view->base).type)->sizes, to = shape_of(graph.value(n.results[r]).type)->sizes;
        if (product(from) != product(to)) {
          if (found.has_expand) found.is_linear = false;   // twice: not worth telling how
          found.has_expand = true;
          found.expanded_from = std::move(from);
          found.expanded_to = std::move(to);
        }
      }
      root[n.results[r]] = std::move(found);
    }
  }
}

}  // namespace cutaway::codegen
