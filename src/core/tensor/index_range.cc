// Which integers may an input hold? Follows the input through operators that keep its numbers and looks at where they are used
// as indices; the table below says what each operator indexes.
#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/tensor/make.h"

namespace cutaway::tensor {
namespace {

// What an index must stay below.
enum class Limit : uint8_t {
  size_of_first_dim,   // self.size(0)
  size_along_dim,      // self.size(dim)
  elements,            // self.numel()
  classes,             // self.size(1), or size(0) of a vector
  last_size,           // self.size(-1)
  number,              // an integer argument; -1 or absent: the last size of the result
  zero,                // only 0 is right without knowing more (offsets must rise, pooling indices depend on windows)
};
struct IndexUse {
  std::string_view op;        // without namespace, overload and a trailing underscore
  uint8_t index;              // position of the index argument, and its name
  std::string_view name;
  uint8_t self;               // position of the tensor that is indexed
  Limit limit;
  uint8_t extra = 0;          // position of `dim` or of the number
  std::string_view extra_name = {};
  int64_t first = 0;          // smallest valid index
};
constexpr IndexUse kUses[] = {
    {"embedding", 1, "indices", 0, Limit::size_of_first_dim},
    {"embedding_renorm", 1, "indices", 0, Limit::size_of_first_dim},
    {"embedding_bag", 1, "indices", 0, Limit::size_of_first_dim},
    {"embedding_bag", 2, "offsets", 0, Limit::zero},
    {"_embedding_bag", 1, "indices", 0, Limit::size_of_first_dim},
    {"_embedding_bag", 2, "offsets", 0, Limit::zero},
    {"_embedding_bag_forward_only", 1, "indices", 0, Limit::size_of_first_dim},
    {"_embedding_bag_forward_only", 2, "offsets", 0, Limit::zero},
    {"embedding_backward", 1, "indices", 0, Limit::number, 2, "num_weights"},
    {"embedding_dense_backward", 1, "indices", 0, Limit::number, 2, "num_weights"},
    {"index_select", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"gather", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"scatter", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"scatter_add", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"scatter_reduce", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"index_add", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"index_copy", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"index_fill", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"index_reduce", 2, "index", 0, Limit::size_along_dim, 1, "dim"},
    {"take_along_dim", 1, "indices", 0, Limit::size_along_dim, 2, "dim"},
    {"take", 1, "index", 0, Limit::elements},
    {"put", 1, "index", 0, Limit::elements},
    {"max_unpool2d", 1, "indices", 0, Limit::zero},
    {"max_unpool3d", 1, "indices", 0, Limit::zero},
    {"max_pool2d_with_indices_backward", 7, "indices", 1, Limit::zero},
    {"max_pool3d_with_indices_backward", 7, "indices", 1, Limit::zero},
    {"adaptive_max_pool2d_backward", 2, "indices", 1, Limit::zero},
    {"adaptive_max_pool3d_backward", 2, "indices", 1, Limit::zero},
    {"_embedding_bag_dense_backward", 1, "indices", 0, Limit::number, 5, "num_weights"},
    {"_embedding_bag_dense_backward", 2, "offset2bag", 0, Limit::zero},
    {"cross_entropy_loss", 1, "target", 0, Limit::classes},
    {"nll_loss", 1, "target", 0, Limit::classes},
    {"nll_loss_nd", 1, "target", 0, Limit::classes},
    {"nll_loss2d", 1, "target", 0, Limit::classes},
    {"nll_loss_forward", 1, "target", 0, Limit::classes},
    {"nll_loss2d_forward", 1, "target", 0, Limit::classes},
    {"nll_loss_backward", 2, "target", 1, Limit::classes},
    {"nll_loss2d_backward", 2, "target", 1, Limit::classes},
    {"multi_margin_loss", 1, "target", 0, Limit::classes},
    {"multi_margin_loss_backward", 2, "target", 1, Limit::classes},
    {"multilabel_margin_loss", 1, "target", 0, Limit::last_size},
    {"multilabel_margin_loss_forward", 1, "target", 0, Limit::last_size},
    {"_ctc_loss", 1, "targets", 0, Limit::last_size, 0, {}, 1},
    {"ctc_loss", 1, "targets", 0, Limit::last_size, 0, {}, 1},
    {"one_hot", 0, "self", 0, Limit::number, 1, "num_classes"},
};
// A list of index tensors, one a dimension: self[indices].
constexpr std::string_view kIndexLists[] = {"index", "index_put", "_unsafe_index", "_unsafe_index_put", "_index_put_impl", "_unsafe_masked_index"};
// Their result holds the numbers of their first argument and no others.
constexpr std::string_view kKeepNumbers[] = {
    "view", "reshape", "_reshape_alias", "_unsafe_view", "expand", "expand_as", "view_as", "alias", "detach", "clone", "contiguous", "to", "_to_copy", "long", "int",
    "permute", "transpose", "t", "squeeze", "unsqueeze", "flatten", "unflatten", "ravel", "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind",
    "repeat", "tile", "roll", "flip", "lift_fresh", "lift_fresh_copy", "as_strided", "movedim", "swapaxes", "unfold", "view_copy", "expand_copy", "lift",
    "type_as", "broadcast_to", "repeat_interleave"};

std::string_view base_name(std::string_view target, std::string_view* overload = nullptr) {
  if (!target.starts_with("aten.")) return {};
  target.remove_prefix(5);
  const size_t dot = target.find('.');
  if (overload) *overload = dot == std::string_view::npos ? std::string_view{} : target.substr(dot + 1);
  std::string_view name = target.substr(0, dot);
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.remove_suffix(1);
  return name;
}

const ir::Argument* argument(const ir::Node& n, size_t position, std::string_view name) {
  if (position < n.args.size()) return &n.args[position];
  for (const auto& [k, a] : n.kwargs)
    if (k == name) return &a;
  return nullptr;
}

class Finder {
 public:
  Finder(const ir::Graph& graph, ir::ValueId input) : graph_(graph) { shift_[input] = 0; }

  std::optional<Range> find() {
    visit(graph_.body);
    if (!known_ || range_.first >= range_.second) return std::nullopt;
    return range_;
  }

 private:
  void visit(const ir::Block& block) {
    for (const ir::Node& n : block.nodes) {
      if (n.kind == ir::Node::Kind::op) visit_op(n);
      for (const ir::Block& region : n.regions) {
        visit(region);
        pass_on(n, region);
      }
    }
  }

  // The results of a call or scope are what its region yields.
  void pass_on(const ir::Node& n, const ir::Block& region) {
    std::vector<std::optional<ir::ValueId>> yielded;
    for (const ir::Argument& a : region.outputs) flatten(a, yielded);
    if (yielded.size() != n.results.size()) return;
    for (size_t i = 0; i < yielded.size(); ++i)
      if (yielded[i])
        if (auto s = shift_.find(*yielded[i]); s != shift_.end()) shift_[n.results[i]] = s->second;
  }
  static void flatten(const ir::Argument& a, std::vector<std::optional<ir::ValueId>>& out) {
    if (auto* l = a.as<ir::List>()) for (auto& x : l->items) flatten(x, out);
    else if (auto* t = a.as<ir::Tuple>()) for (auto& x : t->items) flatten(x, out);
    else if (auto* r = a.as<ir::ValueRef>()) out.push_back(r->id);
    else out.push_back(std::nullopt);
  }

  std::optional<int64_t> shift_of(const ir::Argument* a) const {
    const ir::ValueRef* r = a ? a->as<ir::ValueRef>() : nullptr;
    if (!r) return std::nullopt;
    auto s = shift_.find(r->id);
    return s == shift_.end() ? std::nullopt : std::optional(s->second);
  }
  const ir::TensorType* type_of(const ir::Argument* a) const {
    const ir::ValueRef* r = a ? a->as<ir::ValueRef>() : nullptr;
    if (!r || r->id >= graph_.values.size() || !graph_.value(r->id).type.is_tensor()) return nullptr;
    return &graph_.value(r->id).type.tensor;
  }
  static std::optional<int64_t> size(const ir::TensorType* t, int64_t dim) {
    if (!t) return std::nullopt;
    const int64_t rank = static_cast<int64_t>(t->sizes.size());
    if (dim < 0) dim += rank;
    if (rank == 0 && (dim == 0 || dim == -1)) return 1;   // a 0-dim tensor is indexed as one of one element
    if (dim < 0 || dim >= rank) return std::nullopt;
    return t->sizes[dim].number();
  }

  void visit_op(const ir::Node& n) {
    std::string_view overload;
    const std::string_view op = base_name(n.target, &overload);
    if (op.empty()) return;
    for (const IndexUse& use : kUses)
      if (use.op == op)
        if (const auto shift = shift_of(argument(n, use.index, use.name))) add_limit(use.first, limit(n, use), *shift);
    if (std::find(std::begin(kIndexLists), std::end(kIndexLists), op) != std::end(kIndexLists)) visit_index_list(n, op);
    follow(n, op, overload);
  }

  std::optional<int64_t> limit(const ir::Node& n, const IndexUse& use) const {
    const ir::TensorType* self = type_of(argument(n, use.self, "self"));
    if (!self && use.self == 0) self = type_of(argument(n, 0, "weight"));
    switch (use.limit) {
      case Limit::size_of_first_dim: return size(self, 0);
      case Limit::elements: return self ? self->numel() : std::nullopt;
      case Limit::classes: return size(self, self && self->sizes.size() > 1 ? 1 : 0);
      case Limit::last_size: return size(self, -1);
      case Limit::zero: return 1;
      case Limit::size_along_dim: {
        const ir::Argument* dim = argument(n, use.extra, use.extra_name);
        if (!dim || dim->is_none()) return self ? self->numel() : std::nullopt;   // take_along_dim of the flattened tensor
        const int64_t* number = dim->as<int64_t>();
        return number ? size(self, *number) : std::nullopt;
      }
      case Limit::number: {
        const ir::Argument* a = argument(n, use.extra, use.extra_name);
        const int64_t* number = a ? a->as<int64_t>() : nullptr;
        if (number && *number > 0) return *number;
        if (use.op != "one_hot" || n.results.size() != 1) return std::nullopt;
        ir::Argument result(ir::ValueRef{n.results[0]});
        return size(type_of(&result), -1);
      }
    }
    return std::nullopt;
  }

  void visit_index_list(const ir::Node& n, std::string_view op) {
    const bool masked = op == "_unsafe_masked_index";   // (self, mask, indices, fill)
    const ir::Argument* indices = argument(n, masked ? 2 : 1, "indices");
    const ir::TensorType* self = type_of(argument(n, 0, "self"));
    const ir::List* list = indices ? indices->as<ir::List>() : nullptr;
    if (!list) return;
    int64_t dim = 0;
    for (const ir::Argument& item : list->items) {
      const ir::TensorType* index = type_of(&item);
      const bool is_mask = index && (index->dtype == ir::DType::boolean || index->dtype == ir::DType::u8);
      if (const auto shift = shift_of(&item); shift && !is_mask) add_limit(0, size(self, dim), *shift);
      dim += is_mask ? static_cast<int64_t>(index->sizes.size()) : 1;   // a mask covers as many dimensions as it has
    }
  }

  void add_limit(int64_t first, std::optional<int64_t> limit, int64_t shift) {
    if (!limit) return;
    const Range r(first - shift, *limit - shift);
    range_ = known_ ? Range(std::max(range_.first, r.first), std::min(range_.second, r.second)) : r;
    known_ = true;
  }

  void follow(const ir::Node& n, std::string_view op, std::string_view overload) {
    const auto shift = shift_of(argument(n, 0, "self"));
    if (!shift) return;
    int64_t moved = *shift;
    if (op == "add" || op == "sub") {
      const ir::Argument* other = argument(n, 1, "other");
      const int64_t* number = other ? other->as<int64_t>() : nullptr;
      const ir::Argument* alpha = argument(n, 2, "alpha");
      if (!number || (alpha && !(*alpha == ir::Argument(int64_t{1})))) return;
      if (*number > (int64_t{1} << 53) || *number < -(int64_t{1} << 53)) return;
      moved += op == "add" ? *number : -*number;
    } else if (std::find(std::begin(kKeepNumbers), std::end(kKeepNumbers), op) == std::end(kKeepNumbers)) {
      return;
    }
    if (op == "view" && overload == "dtype") return;                 // other numbers from the same bits
    if (op == "repeat_interleave" && overload == "Tensor") return;   // its first argument is the counts
    for (ir::ValueId id : n.results) {
      const ir::Type& type = graph_.value(id).type;
      if (type.is_tensor() && ir::is_integral(type.tensor.dtype)) shift_[id] = moved;
    }
  }

  const ir::Graph& graph_;
  std::unordered_map<ir::ValueId, int64_t> shift_;   // value = input + shift, elementwise
  bool known_ = false;
  Range range_;
};

}  // namespace

std::optional<Range> index_range(const ir::Graph& graph, ir::ValueId input) {
  if (input >= graph.values.size()) return std::nullopt;
  const ir::Type& type = graph.value(input).type;
  if (!type.is_tensor() || !ir::is_integral(type.tensor.dtype)) return std::nullopt;
  return Finder(graph, input).find();
}

}  // namespace cutaway::tensor
