#include "compiler/codegen/read_operands.h"

#include <cassert>
#include <utility>

namespace cutaway::codegen {

base::Result<TermId> OperandReads::lower(const ir::Node& n) {
  const RuleRow* row = find_rule(n.target);
  if (!row) return base::Error{.what = "no rule for " + n.target};
  Lowering l(graph_, n, terms_, *this);
  if (to_.with_symbols) l.symbolic = to_.with_symbols(n);
  CUTAWAY_TRY_ASSIGN(TermId made, row->rule(l));
  return terms_.rounded(made, graph_.value(n.results[0]).type.tensor.dtype);
}

/// The node that is worked out where its value (or a view of it) is wanted.
const ir::Node* OperandReads::free_node(ir::ValueId id) const {
  const int64_t at = from_.producer[from_.root[id].value].node;
  return at >= 0 && is_free_[static_cast<size_t>(at)] ? &graph_.body.nodes[static_cast<size_t>(at)] : nullptr;
}

TermId OperandReads::lower_free(const ir::Node& n, ir::ValueId seen_as) {
  if (n.target.starts_with("aten.arange")) {   // element number i of its memory is i steps from the start
    const Shape s = *shape_of(graph_.value(seen_as).type);
    Leaf line{Leaf::Kind::position, Op::position, ir::kNoValue, s.sizes, s.strides, space_, from_.root[seen_as].offset, {}};
    if (window_) {
      line.sizes = space_;
      const size_t extra = space_.size() - s.sizes.size();
      line.strides.assign(space_.size(), 0);
      for (size_t d = 0; d < s.sizes.size(); ++d) {
        if (s.sizes[d] == 1) continue;
        line.strides[d + extra] = s.strides[d];
        line.offset -= window_->first[d + extra] * s.strides[d];
      }
    }
    std::optional<Leaf> before = std::exchange(line_, std::move(line));
    auto made = lower(n);
    line_ = std::move(before);
    assert(made.ok());
    return *made;
  }
  auto made = lower(n);
  assert(made.ok());
  return *made;
}

TermId OperandReads::element(ir::ValueId id) {
  if (const ir::Node* n = free_node(id)) return lower_free(*n, id);
  if (window_) return read_window(id, *window_);
  const Shape s = *shape_of(graph_.value(id).type);
  return to_.read({Leaf::Kind::element, Op::load, id, s.sizes, s.strides, space_, from_.root[id].offset, {}});
}

TermId OperandReads::moved(ir::ValueId id, const std::vector<int64_t>& first, TermId mask) {
  Window window{first, mask};
  if (const ir::Node* n = free_node(id)) {
    std::optional<Window> before = std::exchange(window_, std::move(window));
    const TermId made = lower_free(*n, id);
    window_ = std::move(before);
    return made;
  }
  return read_window(id, window);
}

TermId OperandReads::read_window(ir::ValueId id, const Window& window) {
  const Shape s = *shape_of(graph_.value(id).type);
  const size_t extra = space_.size() - s.sizes.size();
  std::vector<int64_t> strides(space_.size(), 0);
  int64_t offset = 0;
  for (size_t d = 0; d < s.sizes.size(); ++d) {
    if (s.sizes[d] == 1) continue;   // repeated, or of a single place
    strides[d + extra] = s.strides[d];
    offset -= window.first[d + extra] * s.strides[d];
  }
  return strided(id, strides, offset, window.mask);
}

TermId OperandReads::strided(ir::ValueId id, const std::vector<int64_t>& strides, int64_t offset, std::optional<TermId> mask) {
  if (const ir::Node* n = free_node(id)) {
    if (!n->target.starts_with("aten.arange")) return lower_free(*n, id);   // a constant: the same everywhere
    std::optional<Leaf> before = std::exchange(line_, Leaf{Leaf::Kind::position, Op::position, ir::kNoValue, space_, strides, space_, from_.root[id].offset + offset, {}});
    auto made = lower(*n);
    line_ = std::move(before);
    assert(made.ok());
    return *made;
  }
  Leaf leaf{Leaf::Kind::memory, Op::load, id, space_, strides, space_, from_.root[id].offset + offset, {}};
  if (mask && !(terms_[*mask].op == Op::constant && terms_[*mask].integer)) {
    leaf.op = Op::load_if;
    leaf.operands = {*mask};
  }
  return to_.read(leaf);
}

TermId OperandReads::further(ir::ValueId id, const std::vector<int64_t>& strides, TermId elements) {
  return to_.read({Leaf::Kind::memory, Op::load_at, id, space_, strides, space_, from_.root[id].offset, {elements}});
}

TermId OperandReads::position(const std::vector<int64_t>& strides) {
  if (line_) return to_.read(*line_);
  return to_.read({Leaf::Kind::position, Op::position, ir::kNoValue, space_, strides, space_, 0, {}});
}

TermId OperandReads::is_within(size_t dim, int64_t first, int64_t past, int64_t block) {
  if (first == 0 && past == space_[dim]) return terms_.truth(true);
  int64_t inside = 1;
  for (size_t d = dim + 1; d < space_.size(); ++d) inside *= space_[d];
  std::vector<int64_t> strides(space_.size(), 0);
  strides[dim] = 1;
  Leaf leaf{Leaf::Kind::position, Op::position, ir::kNoValue, space_, strides, space_, 0, {}};
  const bool is_cut = block > 1 && to_.prefer_cut(block * inside);
  if (is_cut && block < space_[dim]) {   // the number of the block decides, which is the same for all elements of one
    leaf.sizes.clear();
    leaf.strides.clear();
    for (size_t d = 0; d < space_.size(); ++d) {
      if (d == dim) {
        leaf.sizes.push_back(space_[d] / block);
        leaf.strides.push_back(1);
      }
      leaf.sizes.push_back(d == dim ? block : space_[d]);
      leaf.strides.push_back(0);
    }
    leaf.space = leaf.sizes;
    first /= block;
    past /= block;
  }
  const TermId at = to_.read(leaf);
  const TermId mask_first = terms_.make(Op::ge, Held::mask, {at, terms_.integer(first, Held::i64)});
  if (past == (is_cut ? space_[dim] / block : space_[dim])) return mask_first;
  const TermId mask_past = terms_.make(Op::lt, Held::mask, {at, terms_.integer(past, Held::i64)});
  return first == 0 ? mask_past : terms_.make(Op::logical_and, Held::mask, {mask_first, mask_past});
}

}  // namespace cutaway::codegen
