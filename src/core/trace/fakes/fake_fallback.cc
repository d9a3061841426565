#include "core/trace/fakes/fake_fallback.h"

#include <ATen/core/List.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/trace/fakes/constant_folding.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/fakes/operator_info.h"
#include "core/trace/fakes/shape_inference.h"
#include "core/trace/shape_rules/shape_rules.h"
#include "core/trace/value_checks.h"

namespace cutaway::trace {
namespace {

bool is_optional_tensor_list(const c10::IValue& v) {
  return v.isList() && !v.isTensorList() && v.toList().elementType()->kind() == c10::TypeKind::OptionalType &&
         v.toList().elementType()->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::TensorType;
}

template <class F> void each_argument_tensor(const torch::jit::Stack& stack, size_t count, F&& f) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    const auto& v = stack[i];
    if (v.isTensor()) {
      if (v.toTensor().defined()) f(v.toTensor());
    } else if (v.isTensorList() || is_optional_tensor_list(v)) {
      for (const c10::IValue& e : v.toListRef())
        if (e.isTensor() && e.toTensor().defined()) f(e.toTensor());
    }
  }
}

[[noreturn]] void refuse_data(const OperatorInfo& info, const char* why) {
  throw_data_dependent(c10::str(info.full_name, ": ", why, ", and a fake tensor has none"));
}

// The tags say "may depend on data"; these calls of such operators do not.
bool depends_on_data(const OperatorInfo& info, const torch::jit::Stack& stack) {
  if (!info.is_data_dependent) return false;
  const auto* args = stack.data() + (stack.size() - info.argument_count);
  if (info.full_name == "aten::index.Tensor" || info.full_name == "aten::_unsafe_index.Tensor") {
    for (const c10::IValue& e : args[1].toListRef())
      if (e.isTensor() && e.toTensor().defined() && (e.toTensor().scalar_type() == at::kBool || e.toTensor().scalar_type() == at::kByte)) return true;
    return false;
  }
  if (info.full_name == "aten::repeat_interleave.Tensor") return args[1].isNone();
  if (info.full_name == "aten::linalg_lstsq") return !are_lstsq_shapes_known(args[0].toTensor(), args[3].isNone() ? std::nullopt : std::optional<std::string_view>(args[3].toStringRef()));
  return true;
}

// Devices of the arguments: tensors of no dimension on the CPU give way to the others, as in torch's kernels.
class DeviceFinder {
 public:
  void meet(const at::Tensor& t) {
    const c10::Device d = t.device();
    if (d.is_meta() && !fake_impl(t)) return;
    const bool weak = t.dim() == 0 && d.is_cpu();
    if (!device_ || (weak_ && !weak)) {
      device_ = d;
      weak_ = weak;
    } else if (!weak && d != *device_ && !conflict_) {
      conflict_ = d;
    }
  }
  c10::Device device() const { return device_.value_or(c10::Device(c10::kCPU)); }
  bool found() const { return device_.has_value(); }
  const std::optional<c10::Device>& conflict() const { return conflict_; }

 private:
  std::optional<c10::Device> device_, conflict_;
  bool weak_ = false;
};

// A constant among fakes counts by its metadata; a fake stands for its meta tensor. Both are remembered, to find the tensor that
// an in-place operator returns and the base of a view.
class Unwrapper {
 public:
  at::Tensor operator()(const at::Tensor& t) {
    if (!t.defined()) return t;
    for (const auto& [meta, original] : origins_)
      if (original.is_same(t)) return meta;
    at::Tensor meta;
    if (auto* fake = fake_impl(t)) {
      meta = fake->meta();
    } else if (t.is_meta()) {
      meta = t;
    } else {
      TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == at::kStrided && !t.is_quantized(), "a tensor of layout ", t.layout(), " and dtype ", t.scalar_type(),
                                  " cannot be mixed with fake tensors");
      // Constants that share a storage share one here too, as long as this operator looks at them.
      for (const auto& [other_meta, original] : origins_)
        if (!fake_impl(original) && original.storage().is_alias_of(t.storage())) {
          meta = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(other_meta.storage()), c10::DispatchKeySet(c10::DispatchKey::Meta), t.dtype());
          meta.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
        }
      if (!meta.defined()) meta = make_meta(t.scalar_type(), t.sizes(), t.strides(), t.storage_offset());
      if (t.is_conj()) meta._set_conj(true);
      if (t.is_neg()) meta._set_neg(true);
    }
    if (t.unsafeGetTensorImpl()->is_wrapped_number() && !meta.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
    origins_.emplace_back(meta, t);
    return meta;
  }
  const at::Tensor* original_of(const at::Tensor& meta) const {
    for (const auto& [m, original] : origins_)
      if (m.is_same(meta)) return &original;
    return nullptr;
  }
  const at::Tensor* base_of(const at::Tensor& meta) const {
    for (const auto& [m, original] : origins_)
      if (m.storage().is_alias_of(meta.storage())) return &original;
    return nullptr;
  }
  const std::vector<std::pair<at::Tensor, at::Tensor>>& origins() const { return origins_; }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> origins_;
};

// Whatever was known of the value of a tensor is not true any more once an operator writes to its storage.
void note_write(const c10::IValue& v) {
  auto note = [](const at::Tensor& t) {
    if (!t.defined()) return;
    if (auto* fake = fake_impl(t)) fake->mark_written();
    else if (!t.is_meta()) mark_constant_written(t);
  };
  if (v.isTensor()) note(v.toTensor());
  else if (v.isTensorList())
    for (const at::Tensor& t : v.toTensorVector()) note(t);
}

template <class F> void map_tensors(c10::IValue& v, F&& f) {
  if (v.isTensor()) {
    v = f(v.toTensor());
  } else if (v.isTensorList()) {
    auto list = v.toTensorVector();
    for (auto& t : list) t = f(t);
    v = std::move(list);
  } else if (is_optional_tensor_list(v)) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& e : v.toListRef()) list.push_back(e.isTensor() ? std::optional<at::Tensor>(f(e.toTensor())) : std::nullopt);
    v = std::move(list);
  }
}

void make_from_memo(const ResultShapes& shapes, c10::Device device, size_t arguments, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, arguments);
  auto make = [&](const TensorShape& s) { return s.is_defined ? make_fresh_fake(s.dtype, s.sizes, s.strides, device) : at::Tensor(); };
  size_t next = 0;
  for (const int32_t length : shapes.lengths) {
    if (length < 0) {
      stack->emplace_back(make(shapes.tensors[next++]));
    } else {
      std::vector<at::Tensor> list;
      for (int32_t i = 0; i < length; ++i) list.push_back(make(shapes.tensors[next++]));
      stack->emplace_back(std::move(list));
    }
  }
}

}  // namespace

bool handles_as_fake(const OperatorInfo& info, const torch::jit::Stack& stack) {
  bool any_fake = false, any_real = false;
  each_argument_tensor(stack, info.argument_count, [&](const at::Tensor& t) { (fake_impl(t) || is_constant_written(t) ? any_fake : any_real) = true; });
  if (any_fake) return true;
  if (!FakeMode::is_active()) return false;
  return !(any_real && (info.is_data_dependent || !info.returns_tensors) && !info.is_mutable);   // the value of a constant is known
}

static void find_results(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*);

void run_fake(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  if (C10_UNLIKELY(info.is_assertion)) return torch::jit::drop(*stack, info.argument_count);   // asked when the graph runs
  if (!are_known(info, *stack)) {
    // A recorder below autograd has written the question down; one above has the operator itself, which asks when the graph runs.
    if (C10_UNLIKELY(!info.returns_tensors) && ValueChecks::is_question(info, *stack)) {
      torch::jit::drop(*stack, 2);
      stack->emplace_back(true);
      return;
    }
    return find_results(op, info, stack);
  }
  torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(info.argument_count), stack->end());
  if (depends_on_data(info, *stack))
    if (auto known = known_arguments(arguments)) {
      auto values = run_really(op, std::move(*known));
      torch::jit::drop(*stack, info.argument_count);
      stack->insert(stack->end(), values.begin(), values.end());   // a tensor among them is a constant
      return;
    }
  find_results(op, info, stack);
  remember_call(op, info, std::move(arguments), *stack);
}

/// Products of matrices: shape inference takes factors of two dtypes, the kernels of the CPU do not. Their words, so that a program that reads
/// the message gets the same.
static void check_factors(const OperatorInfo& info, const torch::jit::Stack& stack) {
  const size_t first = stack.size() - info.argument_count;
  const auto at = [&](size_t i) -> const at::Tensor& { return stack[first + i].toTensor(); };
  if (info.full_name == "aten::mm") {
    TORCH_CHECK(at(0).dtype() == at(1).dtype(), "expected m1 and m2 to have the same dtype, but got: ", at(0).dtype(), " != ", at(1).dtype());
  } else if (info.full_name == "aten::addmm") {
    TORCH_CHECK(at(0).dtype() == at(2).dtype(), "self and mat2 must have the same dtype, but got ", at(0).scalar_type(), " and ", at(2).scalar_type());
    TORCH_CHECK(at(1).dtype() == at(2).dtype(), "expected m1 and m2 to have the same dtype, but got: ", at(1).dtype(), " != ", at(2).dtype());
  } else if (info.full_name == "aten::bmm") {
    TORCH_CHECK(at(0).dtype() == at(1).dtype(), "expected scalar type ", at(0).scalar_type(), " but found ", at(1).scalar_type());
  }
}

/// Results of the sizes of this world. False: an operator that is not known here.
static bool find_results_in_world(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack, WorldRun& world) {
  const size_t first = stack->size() - info.argument_count;
  const auto arg = [&](size_t i) -> c10::IValue& { return (*stack)[first + i]; };
  const auto fresh = [](const at::Tensor& like, at::ScalarType dtype, std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    return make_fresh_fake(dtype, sizes, strides, like.device());
  };
  const auto give = [&](std::vector<at::Tensor> results) {
    torch::jit::drop(*stack, info.argument_count);
    for (at::Tensor& t : results) stack->emplace_back(std::move(t));
    return true;
  };
  const auto tensor = [&](size_t i) -> at::Tensor { return arg(i).toTensor(); };
  const std::string& name = info.full_name;
  if (name == "aten::index.Tensor" || name == "aten::_unsafe_index.Tensor") {   // a mask is as many indices as it has dimensions
    c10::List<std::optional<at::Tensor>> indices;
    for (const c10::IValue& e : arg(1).toListRef()) {
      if (!e.isTensor() || !e.toTensor().defined()) { indices.push_back(std::nullopt); continue; }
      const at::Tensor& t = e.toTensor();
      if (t.scalar_type() != at::kBool && t.scalar_type() != at::kByte) { indices.push_back(t); continue; }
      const int64_t at_dim = static_cast<int64_t>(indices.size());
      for (int64_t d = 0; d < t.dim(); ++d)
        TORCH_CHECK_INDEX(at_dim + d < tensor(0).dim() && t.size(d) == tensor(0).size(at_dim + d), "The shape of the mask ", t.sizes(), " at index ", d, " does not match the shape of the indexed tensor ", tensor(0).sizes(), " at index ", at_dim + d);
      const int64_t n = world.size_by(t, true);
      for (int64_t d = 0; d < t.dim(); ++d) indices.push_back(fresh(t, at::kLong, {n}));
      if (t.dim() == 0) return false;
    }
    arg(1) = std::move(indices);
    find_results(op, info, stack);
    return true;
  }
  if (name == "aten::nonzero") return give({fresh(tensor(0), at::kLong, {world.size_by(tensor(0), true), tensor(0).dim()})});
  if (name == "aten::masked_select") return give({fresh(tensor(0), tensor(0).scalar_type(), {world.size_by(tensor(1), tensor(0).sizes() == tensor(1).sizes())})});
  if (name == "aten::repeat_interleave.Tensor") return give({fresh(tensor(0), at::kLong, {world.size_by(tensor(0), false)})});
  const at::Tensor self = tensor(0);
  if (name == "aten::_unique" || name == "aten::_unique2") {
    const int64_t n = world.size_by(self, false);
    std::vector<at::Tensor> results = {fresh(self, self.scalar_type(), {n}), fresh(self, at::kLong, arg(2).toBool() ? self.sizes().vec() : std::vector<int64_t>{0})};
    if (name == "aten::_unique2") {
      if (arg(3).toBool()) results[1] = fresh(self, at::kLong, self.sizes().vec());   // which eager then has, too
      results.push_back(fresh(self, at::kLong, {arg(3).toBool() ? n : 0}));
    }
    return give(std::move(results));
  }
  if (name == "aten::bincount") {
    const at::Tensor weights = arg(1).isTensor() ? tensor(1) : at::Tensor();
    const at::ScalarType dtype = !weights.defined() ? at::kLong : weights.scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
    return give({fresh(self, dtype, {world.size_by(self, false)})});
  }
  if (name == "aten::unique_consecutive" && arg(3).isNone()) {
    const int64_t n = world.size_by(self, false);
    return give({fresh(self, self.scalar_type(), {n}), fresh(self, at::kLong, arg(1).toBool() ? self.sizes().vec() : std::vector<int64_t>{0}), fresh(self, at::kLong, {arg(2).toBool() ? n : 0})});
  }
  return false;
}

static void find_results(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t first = stack->size() - info.argument_count;
  TORCH_CHECK_NOT_IMPLEMENTED(!info.is_nested, info.full_name, ": nested tensors cannot be traced, only strided ones");
  if (depends_on_data(info, *stack)) {
    if (WorldRun* world = WorldRun::current(); world && find_results_in_world(op, info, stack, *world)) return;
    refuse_data(info, info.returns_values ? "its result is a value of the tensor" : "the shape of its result depends on the values of the tensor");
  }

  if (info.view_rule) {
    const auto& self = (*stack)[first].toTensor();
    if (fake_impl(self) && !(is_device_missing(self.device()) && torch::autograd::get_current_graph_task_id() != -1)) {
      c10::IValue views;
      if (info.view_rule(self, stack->data() + first, views)) {
        count_view();
        torch::jit::drop(*stack, info.argument_count);
        stack->push_back(std::move(views));
        return;
      }
    }
  }
  std::optional<c10::Device> named;
  DeviceFinder devices;
  each_argument_tensor(*stack, info.argument_count, [&](const at::Tensor& t) { devices.meet(t); });
  for (size_t i = 0; i < info.argument_count; ++i) {
    const auto& v = (*stack)[first + i];
    if (v.isDevice()) {
      named = v.toDevice();
      if (!named->is_cpu() && !named->is_meta() && !named->has_index()) named->set_index(0);
    }
  }
  const c10::Device device = named ? *named : devices.device();
  TORCH_CHECK(!devices.conflict() || named || info.may_mix_devices, info.full_name, ": expected all tensors to be on the same device, but found ",
              devices.device().str(), " and ", devices.conflict()->str());
  if (is_device_missing(device) && torch::autograd::get_current_graph_task_id() != -1) refuse_backward(device);

  static thread_local std::string key;
  write_memo_key(info, *stack, key);
  if (!key.empty())
    if (const auto* shapes = find_memo(key)) {
      make_from_memo(*shapes, device, info.argument_count, stack);
      return;
    }
  if (device.is_cpu()) check_factors(info, *stack);
  const std::string call = key;   // inference may come back here through a Python meta kernel

  Unwrapper unwrap;
  torch::jit::Stack arguments;
  if (info.is_mutable) arguments.assign(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  for (size_t i = 0; i < info.argument_count; ++i) {
    auto& v = (*stack)[first + i];
    const auto& name = schema.arguments()[i].name();
    if (v.isDevice()) v = c10::Device(c10::kMeta);
    else if (info.names_device && name == "device" && v.isNone() && !devices.found()) v = c10::Device(c10::kMeta);
    else if (name == "pin_memory" && !v.isNone()) v = false;
    else map_tensors(v, unwrap);
  }
  infer_on_meta(op, info, stack);

  if (!call.empty()) {
    std::vector<const c10::StorageImpl*> storages;
    for (const auto& [meta, original] : unwrap.origins()) storages.push_back(meta.storage().unsafeGetStorageImpl());
    ResultShapes shapes;
    if (describe_results(info, *stack, storages, shapes)) store_memo(call, std::move(shapes));
  }
  if (info.is_mutable)
    for (size_t i = 0; i < info.argument_count; ++i)
      if (const auto* alias = schema.arguments()[i].alias_info(); alias && alias->isWrite()) note_write(arguments[i]);
  if (info.is_mutable)
    for (const auto& [meta, original] : unwrap.origins()) {
      if (auto* fake = fake_impl(original)) {
        if (fake->differs_from_meta()) fake->follow_meta();
      } else {
        TORCH_CHECK_NOT_IMPLEMENTED(meta.sizes() == original.sizes() && meta.strides() == original.strides(), info.full_name, " would resize a tensor that is a constant of the recording");
      }
    }

  std::vector<std::pair<at::Tensor, at::Tensor>> fresh;   // results that share a storage among themselves
  auto wrap = [&](const at::Tensor& t) -> at::Tensor {
    if (!t.defined()) return t;
    if (fake_impl(t)) return t;
    if (const auto* original = unwrap.original_of(t)) return *original;
    TORCH_CHECK(t.is_meta(), info.full_name, ": its shape was asked for, and it gave a tensor on ", t.device().str());
    const auto* base = unwrap.base_of(t);
    if (base && fake_impl(*base)) return wrap_view(t, *base);
    for (const auto& [meta, fake] : fresh)
      if (meta.storage().is_alias_of(t.storage())) return wrap_view(t, fake);
    std::optional<c10::InferenceMode> normal;   // a view of a constant that is no inference tensor is none either
    if (base && !base->is_inference()) normal.emplace(false);
    auto fake = wrap_fresh(t, device);
    fresh.emplace_back(t, fake);
    return fake;
  };
  for (size_t i = stack->size() - info.return_count; i < stack->size(); ++i) map_tensors((*stack)[i], wrap);
}

}  // namespace cutaway::trace
