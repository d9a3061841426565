// A graph at double precision. Types and dtype arguments change in place; three kinds of operators need more:
//  - without a floating input, torch's default dtype decides about the result: it is said, or the integers are cast before;
//  - random operators draw other numbers in f64 than in f32: they keep their dtype and the result is cast;
//  - operators on bits or with kernels for one precision only run in their own precision, with casts around them.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "core/tensor/make.h"

namespace cutaway::tensor {
namespace {

ir::DType wide(ir::DType d) {
  // Two numbers a byte: torch converts it to nothing.
  if (d == ir::DType::f4e2m1fnx2) return d;
  if (ir::is_complex(d)) return ir::DType::c128;
  return ir::is_floating(d) ? ir::DType::f64 : d;
}

// Operators whose meaning depends on the bits of their input, or whose kernels know one precision.
constexpr std::string_view kOwnPrecision[] = {
    "aten.view.dtype", "aten.view_copy.dtype", "aten.frexp.Tensor", "aten.nextafter",
    "aten.quantize_per_tensor", "aten.quantize_per_tensor.tensor_qparams", "aten.quantize_per_tensor_dynamic", "aten.quantize_per_channel",
    "aten.fake_quantize_per_tensor_affine_cachemask", "aten.fake_quantize_per_channel_affine_cachemask",
    "aten._scaled_mm", "aten._scaled_grouped_mm", "aten._weight_int4pack_mm", "aten._weight_int8pack_mm", "aten._weight_int4pack_mm_for_cpu",
    "aten._dyn_quant_matmul_4bit", "aten._dyn_quant_pack_4bit_weight"};
// Numbers of a distribution, without an argument for their dtype. (Dropout and attention draw too, but compute more than they draw.)
constexpr std::string_view kDrawing[] = {"normal", "normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "geometric_", "random_",
                                       "bernoulli", "bernoulli_", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet"};
// A softmax that widens its half input; f64 is wide already, and torch refuses the flag for it.
constexpr std::string_view kHalfToFloat[] = {"aten._softmax", "aten._log_softmax", "aten._safe_softmax"};

template <size_t N> bool is_one_of(const std::string_view (&names)[N], std::string_view name) { return std::find(std::begin(names), std::end(names), name) != std::end(names); }

// Methods that name a precision, as captured calls.
std::string_view wide_call(std::string_view target) {
  if (target == "Tensor.half" || target == "Tensor.float" || target == "Tensor.bfloat16") return "Tensor.double";
  if (target == "Tensor.chalf" || target == "Tensor.cfloat") return "Tensor.cdouble";
  return target;
}

class GraphCaster {
 public:
  explicit GraphCaster(const ir::Graph& graph) : graph_(graph) {
    narrow_.reserve(graph.values.size());
    for (const ir::Value& v : graph.values) narrow_.push_back(v.type);
  }

  ir::Graph cast() && {
    for (ir::Value& v : graph_.values)
      if (v.type.is_tensor()) v.type.tensor.dtype = wide(v.type.tensor.dtype);
    cast_block(graph_.body);
    return std::move(graph_);
  }

 private:
  struct Op {
    int dtype_position = -1;        // of an argument `dtype`; -1: it has none
    bool dtype_is_kwarg = false;
    bool is_random = false;
    bool is_draw = false;           // of kDrawing
    bool writes_first = false;      // to its first argument
    bool is_pointwise = false;
  };
  static Op look_up(const std::string& target) {
    Op op;
    const auto name = ir::split_op_name(target);
    if (!name) return op;
    const auto handle = c10::Dispatcher::singleton().findSchema({name->name, name->overload});
    if (!handle) return op;
    const auto& arguments = handle->schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].name() == "dtype") {
        op.dtype_position = static_cast<int>(i);
        op.dtype_is_kwarg = arguments[i].kwarg_only();
      }
    const std::string_view plain = std::string_view(name->name).substr(name->name.find("::") + 2);
    op.is_draw = name->name.starts_with("aten::") && is_one_of(kDrawing, plain);
    op.writes_first = !arguments.empty() && arguments[0].alias_info() && arguments[0].alias_info()->isWrite();
    const auto tags = handle->getTags();
    op.is_random = std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
    op.is_pointwise = std::find(tags.begin(), tags.end(), at::Tag::pointwise) != tags.end();
    return op;
  }

  bool is_narrow(ir::ValueId id) const {
    if (id >= narrow_.size() || !narrow_[id].is_tensor()) return false;
    const ir::DType d = narrow_[id].tensor.dtype;
    return wide(d) != d;
  }
  bool is_real_number(ir::ValueId id) const {
    return id < narrow_.size() && narrow_[id].is_tensor() && (ir::is_floating(narrow_[id].tensor.dtype) || ir::is_complex(narrow_[id].tensor.dtype));
  }

  static void cast_argument(ir::Argument& a) {
    if (auto* d = a.as<ir::DType>()) *d = wide(*d);
    else if (auto* l = a.as<ir::List>()) for (auto& x : l->items) cast_argument(x);
    else if (auto* t = a.as<ir::Tuple>()) for (auto& x : t->items) cast_argument(x);
    else if (auto* m = a.as<ir::Dict>()) for (auto& x : m->items) cast_argument(x.second);
  }

  static void cast_arguments(ir::Node& n) {
    for (ir::Argument& a : n.args) cast_argument(a);
    for (auto& [key, a] : n.kwargs) cast_argument(a);
  }

  void cast_block(ir::Block& block) {
    std::vector<ir::Node> out;
    out.reserve(block.nodes.size());
    for (ir::Node& n : block.nodes) {
      // f64 is never narrowed by autocast, but what factories make inside of it might be.
      for (auto& a : n.state.autocast) a.enabled = false;
      for (ir::Block& region : n.regions) cast_block(region);
      if (n.kind == ir::Node::Kind::op) {
        cast_op(std::move(n), out);
        continue;
      }
      n.target = wide_call(n.target);
      cast_arguments(n);
      out.push_back(std::move(n));
    }
    block.nodes = std::move(out);
  }

  void cast_op(ir::Node n, std::vector<ir::Node>& out) {
    bool reads_numbers = false;
    ir::for_each_use(n, [&](ir::ValueId id) { reads_numbers |= is_real_number(id); });
    const bool gives_narrow = std::any_of(n.results.begin(), n.results.end(), [&](ir::ValueId id) { return is_narrow(id); });
    if (is_one_of(kOwnPrecision, n.target)) {
      run_in_own_precision(std::move(n), out);
      return;
    }
    if (is_one_of(kHalfToFloat, n.target)) clear_half_to_float(n);
    const Op op = gives_narrow ? look_up(n.target) : Op{};
    const bool takes_dtype = op.dtype_position >= 0;
    if (gives_narrow && op.is_random && takes_dtype) {   // rand, randn_like: the same numbers, then cast
      set_dtype(n, op, narrow_[n.results[0]].tensor.dtype);
      cast_results(std::move(n), out);
      return;
    }
    if (gives_narrow && op.is_random && op.is_draw) {
      if (op.writes_first) draw_in_place(std::move(n), out);
      else run_in_own_precision(std::move(n), out);
      return;
    }
    if (gives_narrow && !reads_numbers && !takes_dtype) {   // integer division, sqrt of integers: torch's default dtype
      if (op.is_pointwise && reads_only_integers(n)) widen_integers(std::move(n), out);
      else cast_results(std::move(n), out);
      return;
    }
    cast_arguments(n);
    if (gives_narrow && !reads_numbers && !has_dtype(n, op)) set_dtype(n, op, wide(narrow_[n.results[0]].tensor.dtype));
    out.push_back(std::move(n));
  }

  bool reads_only_integers(const ir::Node& n) const {
    bool only = true;   // a bool may be a condition, which must stay one
    ir::for_each_use(n, [&](ir::ValueId id) { only &= !narrow_[id].is_tensor() || ir::is_integral(narrow_[id].tensor.dtype); });
    return only;
  }

  // Integers that an operator turns into numbers of the default dtype: as f64 from the start, so that nothing is rounded to f32.
  void widen_integers(ir::Node n, std::vector<ir::Node>& out) {
    auto widen = [&](ir::ValueId& id) {
      if (!narrow_[id].is_tensor()) return;
      ir::Type type = narrow_[id];
      type.tensor.dtype = ir::DType::f64;
      const ir::ValueId fresh = graph_.add_value(graph_.value(id).name + "_wide", type);
      narrow_.push_back(std::move(type));
      out.push_back(cast_node(id, fresh, ir::DType::f64, n.location));
      id = fresh;
    };
    for (ir::Argument& a : n.args) ir::for_each_value(a, widen);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, widen);
    out.push_back(std::move(n));
  }

  static ir::Argument* dtype_argument(ir::Node& n, const Op& op) {
    if (!op.dtype_is_kwarg && op.dtype_position < static_cast<int>(n.args.size())) return &n.args[op.dtype_position];
    for (auto& [key, a] : n.kwargs)
      if (key == "dtype") return &a;
    return nullptr;
  }
  static bool has_dtype(ir::Node& n, const Op& op) {
    const ir::Argument* a = dtype_argument(n, op);
    return a && !a->is_none();
  }
  static void set_dtype(ir::Node& n, const Op& op, ir::DType d) {
    if (ir::Argument* a = dtype_argument(n, op)) *a = d;
    else n.kwargs.emplace_back("dtype", d);
  }

  static void clear_half_to_float(ir::Node& n) {
    if (n.args.size() > 2 && n.args[2].as<bool>()) n.args[2] = false;
    for (auto& [key, a] : n.kwargs)
      if (key == "half_to_float") a = false;
  }

  ir::Node cast_node(ir::ValueId from, ir::ValueId to, ir::DType dtype, ir::LocationId location) const {
    ir::Node n;
    n.target = "aten.to.dtype";
    n.args = {ir::ValueRef{from}, dtype};
    n.results = {to};
    n.returns = {ir::Node::kSingle};
    n.location = location;
    return n;
  }

  // A value with the name of `id` and the type that it had.
  ir::ValueId add_narrow(ir::ValueId id) {
    const ir::ValueId fresh = graph_.add_value(graph_.value(id).name + "_own", narrow_[id]);
    narrow_.push_back(graph_.value(fresh).type);
    return fresh;
  }

  // The node's results keep their precision under new names; casts give the old names f64.
  void cast_results(ir::Node n, std::vector<ir::Node>& out) {
    std::vector<ir::Node> casts;
    for (ir::ValueId& id : n.results) {
      if (!is_narrow(id)) continue;
      const ir::ValueId own = add_narrow(id);
      casts.push_back(cast_node(own, id, wide(narrow_[id].tensor.dtype), n.location));
      id = own;
    }
    out.push_back(std::move(n));
    std::move(casts.begin(), casts.end(), std::back_inserter(out));
  }

  void run_in_own_precision(ir::Node n, std::vector<ir::Node>& out) {
    narrow_uses(n, out);
    cast_results(std::move(n), out);
  }

  // What is drawn into a tensor is drawn into a narrow copy of it first.
  void draw_in_place(ir::Node n, std::vector<ir::Node>& out) {
    ir::Node copy;
    copy.target = "aten.copy_";
    copy.args = {n.args[0]};
    copy.results = n.results;
    copy.returns = {ir::Node::kSingle};
    copy.location = n.location;
    narrow_uses(n, out);
    n.results[0] = add_narrow(n.results[0]);
    copy.args.emplace_back(ir::ValueRef{n.results[0]});
    out.push_back(std::move(n));
    out.push_back(std::move(copy));
  }

  void narrow_uses(ir::Node& n, std::vector<ir::Node>& out) {
    auto narrow_use = [&](ir::ValueId& id) {
      if (!is_narrow(id)) return;
      const ir::ValueId own = add_narrow(id);
      out.push_back(cast_node(id, own, narrow_[own].tensor.dtype, n.location));
      id = own;
    };
    for (ir::Argument& a : n.args) ir::for_each_value(a, narrow_use);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, narrow_use);
  }

  ir::Graph graph_;
  std::vector<ir::Type> narrow_;   // the types before, by value
};

}  // namespace

ir::Graph cast_to_fp64(const ir::Graph& graph) { return GraphCaster(graph).cast(); }

}  // namespace cutaway::tensor
