#include "compiler/codegen/build.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "compiler/codegen/read_operands.h"

namespace cutaway::codegen {
namespace {

class Builder {
 public:
  Builder(const ir::Graph& graph, const Fusion& fusion, const Group& group, const SymbolicSizes* sizes) : graph_(graph), fusion_(fusion), from_(fusion.from), group_(group), sizes_(sizes), terms_(kernel_.terms) {}

  Kernel run(const std::vector<ir::ValueId>& stored, std::string name) {
    kernel_.name = std::move(name);
    kernel_.form = group_.form;
    kernel_.device = group_.device;
    kernel_.sums_blocks = group_.sums_blocks;
    kernel_.scan_rows = group_.scan_rows;
    set_space();
    if (kernel_.form != Form::pointwise) find_general();
    kernel_.is_epilogue = group_.product >= 0;
    if (kernel_.is_epilogue) find_general();
    for (size_t i : group_.nodes) {
      if (static_cast<int64_t>(i) == group_.product) load_tile(graph_.body.nodes[i].results[0]);
      else lower(graph_.body.nodes[i]);
    }
    for (ir::ValueId id : stored)
      if (!kernel_.is_epilogue || from_.producer[id].node != group_.product) store(id);   // the product itself writes its own
    if (kernel_.form == Form::pointwise && !kernel_.is_epilogue) {
      order_space();
      find_general();
    }
    comment();
    return std::move(kernel_);
  }

 private:
  /// Dimensions between the cuts, outermost first.
  void set_space() {
    std::vector<int64_t> ends = group_.cuts;
    for (int64_t c : group_.preferred) {   // where it goes with the others
      const auto at = std::ranges::lower_bound(ends, c);
      if ((at != ends.end() && (*at == c || *at % c != 0)) || (at != ends.begin() && c % *(at - 1) != 0) || group_.total % c != 0 || c == group_.total || (group_.inner && c < group_.inner * (group_.sums_blocks ? kBlockRows : 1))) continue;
      ends.insert(at, c);
    }
    ends.push_back(group_.total);
    int64_t before = 1;
    for (int64_t end : ends) {
      if (end == before) continue;
      kernel_.sizes.insert(kernel_.sizes.begin(), end / before);
      before = end;
    }
    if (kernel_.sizes.empty()) kernel_.sizes.push_back(1);
    if (group_.form != Form::pointwise && group_.inner == group_.total) kernel_.sizes.insert(kernel_.sizes.begin(), 1);
    kernel_.inner_dims = 1;
  }

  void find_general() {
    kernel_.is_general = sizes_ != nullptr;
    kernel_.has_fixed_inner = sizes_ && sizes_->is_fixed(graph_, group_, kernel_.sizes.back(), group_.total);
  }

  /// Pieces cover the space from its end; at a row's level they cover the rows.
  Access access(std::vector<Piece> p, int64_t offset, Level level) const {
    if (level == Level::row) p.push_back({kernel_.inner(), 0});
    if (level == Level::column) p.insert(p.begin(), {kernel_.rows(), 0});
    Access a;
    a.offset = offset;
    a.strides.assign(kernel_.sizes.size(), 0);
    size_t piece = p.size();
    int64_t left = 1, stride = 0;
    for (size_t d = kernel_.sizes.size(); d-- > 0;) {
      if (kernel_.sizes[d] == 1) continue;
      while (left == 1 && piece > 0) {
        left = p[--piece].size;
        stride = p[piece].stride;
      }
      a.strides[d] = stride;
      assert(left % kernel_.sizes[d] == 0);
      stride *= kernel_.sizes[d];
      left /= kernel_.sizes[d];
    }
    return a;
  }

  /// The product's result, where the tile lies.
  void load_tile(ir::ValueId id) {
    const Shape shape = *shape_of(graph_.value(id).type);
    const ir::DType dtype = graph_.value(id).type.tensor.dtype;
    term_of_[id] = terms_.access(Op::load, *held_for(dtype), buffer(id, false), dtype, access(pieces(shape.sizes, shape.strides, shape.sizes), 0, Level::element), Level::element, {});
  }

  void lower(const ir::Node& n) {
    const ir::ValueId result = n.results[0];
    if (const auto reduction = reduction_of(graph_, n)) {
      reduce(n, *reduction);
      return;
    }
    const Shape shape = *shape_of(graph_.value(result).type);
    const Level level = shape.numel() == group_.total || group_.form != Form::rows ? Level::element : Level::row;
    term_of_[result] = pointwise(n, shape.sizes, level);
    terms_.name(term_of_[result], graph_.value(result).name);
  }

  TermId pointwise(const ir::Node& n, const std::vector<int64_t>& space, Level level) {
    const OperandReads::To to = reads_at(level);
    auto made = OperandReads(graph_, from_, fusion_.is_free, terms_, space, to).lower(n);
    assert(made.ok());
    return *made;
  }

  void reduce(const ir::Node& n, const Reduction& r) {
    const ir::ValueId operand = n.args[0].as<ir::ValueRef>()->id, result = n.results[0];
    const Shape from = *shape_of(graph_.value(operand).type);
    const Level level = group_.form == Form::rows && !is_block_sum(n) ? Level::row : Level::column;
    const ir::DType dtype = graph_.value(result).type.tensor.dtype;
    const Held held = r.op == Op::any || r.op == Op::all ? Held::mask : *held_for(dtype);
    TermId x = terms_.cast(value(operand, from.sizes, Level::element), held);
    TermId t = terms_.reduce(r.op, x, level);
    if (r.is_mean) {
      const int64_t count = level == Level::row ? kernel_.inner() : kernel_.rows();
      const bool is_fixed = !kernel_.is_general || (level == Level::row && kernel_.has_fixed_inner);
      t = terms_.make(Op::div, held, {t, is_fixed ? terms_.number(static_cast<double>(count), held) : terms_.size(static_cast<double>(count), held)});
    }
    term_of_[result] = terms_.rounded(t, dtype);
    terms_.name(term_of_[result], graph_.value(result).name);
  }

  /// The term of an operand that is broadcast to `space`.
  TermId value(ir::ValueId id, const std::vector<int64_t>& space, Level level) {
    const OperandReads::To to = reads_at(level);
    return OperandReads(graph_, from_, fusion_.is_free, terms_, space, to).element(id);
  }

  OperandReads::To reads_at(Level level) {
    return {[this, level](const Leaf& leaf) { return read(leaf, level); }, [this, level](int64_t elements) { return is_cut(level == Level::row ? elements * kernel_.inner() : elements); },
            [this](const ir::Node& n) { return sizes_ ? sizes_->node_of(n) : nullptr; }};
  }

  TermId read(const Leaf& leaf, Level level) {
    if (leaf.kind == Leaf::Kind::element)
      if (auto it = term_of_.find(from_.root[leaf.value].value); it != term_of_.end()) return it->second;
    Access a = access(pieces(leaf.sizes, leaf.strides, leaf.space), leaf.offset, level);
    const bool varies = a.strides.back() != 0;
    const Level own = group_.form != Form::columns && !varies ? Level::row : Level::element;   // read once for all elements of a row
    if (leaf.op == Op::position) return terms_.access(Op::position, Held::i64, 0, ir::DType::i64, std::move(a), own, {});
    const ir::DType dtype = graph_.value(leaf.value).type.tensor.dtype;
    return terms_.access(leaf.op, *held_for(dtype), buffer(from_.root[leaf.value].value, false), dtype, std::move(a), own, leaf.operands);
  }

  /// Whether a dimension of the space ends there.
  bool is_cut(int64_t elements) const {
    int64_t at = 1;
    for (size_t d = kernel_.sizes.size(); d-- > 0;)
      if ((at *= kernel_.sizes[d]) == elements) return true;
    return elements == 1;
  }

  uint32_t buffer(ir::ValueId id, bool is_written) {
    const auto [it, is_new] = buffer_of_.try_emplace(id, static_cast<uint32_t>(kernel_.buffers.size()));
    if (is_new) kernel_.buffers.push_back({id, graph_.value(id).name, graph_.value(id).type.tensor.dtype, is_written});
    return it->second;
  }

  void store(ir::ValueId id) {
    const Shape shape = *shape_of(graph_.value(id).type);
    const TermId term = term_of_.at(id);
    const int64_t numel = shape.numel();
    const bool is_sum = is_reduction_result(id);
    if (is_sum && is_block_sum(graph_.body.nodes[static_cast<size_t>(from_.producer[id].node)])) {
      const int64_t columns = kernel_.inner();
      kernel_.stores.push_back({buffer(id, true), access({{group_.rows() / kBlockRows, columns}, {kBlockRows, 0}, {columns, 1}}, 0, Level::element), term, graph_.value(id).type.tensor.dtype});
      return;
    }
    const Level level = is_sum ? (group_.form == Form::rows ? Level::row : Level::column) : numel == group_.total || group_.form != Form::rows ? Level::element : Level::row;
    kernel_.stores.push_back({buffer(id, true), access(pieces(shape.sizes, shape.strides, shape.sizes), 0, level), term, graph_.value(id).type.tensor.dtype});
  }

  /// In a kernel of rows all other reductions are of their last dimensions.
  bool is_block_sum(const ir::Node& n) const {
    if (!group_.sums_blocks) return false;
    const auto r = reduction_of(graph_, n);
    const auto shape = shape_of(graph_.value(n.args[0].as<ir::ValueRef>()->id).type);
    return r && shape && shape->sizes.size() == 3 && r->dims == std::vector<int64_t>{1};
  }
  bool is_reduction_result(ir::ValueId id) const { return reduction_of(graph_, graph_.body.nodes[static_cast<size_t>(from_.producer[id].node)]).has_value(); }

  /// A pointwise kernel may take its elements in any order: in that of memory, as most accesses have it, so that neighbours lie side by side.
  void order_space() {
    std::vector<Access*> all;
    std::vector<int64_t> weight;   // bytes that an access touches
    const auto add = [&](Access& a, ir::DType dtype, bool votes) {
      int64_t bytes = votes ? ir::dtype_bytes(dtype) : 0;   // a position costs the same in any order
      for (size_t d = 0; d < kernel_.sizes.size(); ++d) bytes *= a.strides[d] ? kernel_.sizes[d] : 1;
      all.push_back(&a);
      weight.push_back(bytes);
    };
    for (Store& s : kernel_.stores) add(s.access, s.memory, true);
    for (Term& t : kernel_.terms)
      if (has_access(t.op)) add(t.access, t.memory, reads_memory(t.op) && t.op != Op::load_at);
    const size_t rank = kernel_.sizes.size();
    std::vector<size_t> order(rank);
    for (size_t d = 0; d < rank; ++d) order[d] = d;
    // Outer is what has the larger strides, as the accesses vote with their bytes; stable, so that ties stay as they are.
    const auto outer = [&](size_t a, size_t b) {
      int64_t votes = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const int64_t x = all[i]->strides[a], y = all[i]->strides[b];
        if (x && y) votes += x > y ? weight[i] : x < y ? -weight[i] : 0;
      }
      return votes;
    };
    for (size_t i = 1; i < rank; ++i)   // by insertion: votes need not be transitive
      for (size_t j = i; j > 0 && outer(order[j], order[j - 1]) > 0; --j) std::swap(order[j], order[j - 1]);
    const auto permuted = [&](const std::vector<int64_t>& v) {
      std::vector<int64_t> out;
      for (size_t d : order) out.push_back(v[d]);
      return out;
    };
    kernel_.sizes = permuted(kernel_.sizes);
    for (Access* a : all) a->strides = permuted(a->strides);
    for (size_t d = rank - 1; d > 0; --d) {   // neighbours that all accesses walk through evenly are one
      const bool joins = std::ranges::all_of(all, [&](const Access* a) { return a->strides[d - 1] == a->strides[d] * kernel_.sizes[d]; });
      if (!joins) continue;
      kernel_.sizes[d - 1] *= kernel_.sizes[d];
      kernel_.sizes.erase(kernel_.sizes.begin() + static_cast<long>(d));
      for (Access* a : all) {
        a->strides[d - 1] = a->strides[d];
        a->strides.erase(a->strides.begin() + static_cast<long>(d));
      }
    }
    for (Term& t : kernel_.terms) {   // what is the same along a row depends on what a row is
      if (has_access(t.op)) t.level = t.access.strides.back() ? Level::element : Level::row;
      if (t.operands.empty()) continue;
      const bool varies = std::ranges::any_of(t.operands, [&](TermId o) { return kernel_.terms[o].level == Level::element; }) || (has_access(t.op) && t.access.strides.back());
      t.level = varies ? Level::element : Level::row;
    }
  }

  /// The user's lines, and the operators of each.
  void comment() {
    std::vector<std::pair<std::string, std::string>> lines;
    for (size_t i : group_.nodes) {
      const ir::Node& n = graph_.body.nodes[i];
      std::string place;
      if (n.location != ir::kNoLocation) {
        const ir::Location& l = graph_.locations[n.location];
        const size_t slash = l.file.rfind('/');
        place = (slash == std::string::npos ? l.file : l.file.substr(slash + 1)) + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " " + l.function);
      }
      if (lines.empty() || lines.back().first != place) lines.emplace_back(place, "");
      lines.back().second += (lines.back().second.empty() ? "" : ", ") + n.target;
    }
    for (auto& [place, operators] : lines) kernel_.comment.push_back((place.empty() ? "" : place + ": ") + operators);
  }

  const ir::Graph& graph_;
  const Fusion& fusion_;
  const Origins& from_;
  const Group& group_;
  const SymbolicSizes* sizes_;
  Kernel kernel_;
  Terms terms_;
  std::map<ir::ValueId, TermId> term_of_;
  std::map<ir::ValueId, uint32_t> buffer_of_;
};

}  // namespace

Kernel build_kernel(const ir::Graph& graph, const Fusion& fusion, const Group& group, const std::vector<ir::ValueId>& stored, std::string name, const SymbolicSizes* sizes) {
  return Builder(graph, fusion, group, sizes).run(stored, std::move(name));
}

}  // namespace cutaway::codegen
