#include "core/trace/fake_tensor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <typeinfo>
#include <unordered_map>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/node_pointer.h"

namespace cutaway::trace {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

c10::Storage storage_without_data(int64_t bytes, c10::Device device) { return c10::Storage(c10::make_intrusive<FakeStorage>(bytes, device)); }

DispatchKeySet keys_of(c10::Device device) {
  return DispatchKeySet(c10::computeDispatchKey(at::kFloat, at::kStrided, device)).add(kBelowKey);
}

// A guard for a device type that this build lacks: autograd asks one for a stream whenever a tensor of the device joins a graph,
// and ends the process when there is none.
template <c10::DeviceType type> struct AbsentDeviceGuard final : c10::impl::NoOpDeviceGuardImpl<type> {
  c10::Device getDevice() const override { return {type, 0}; }
  c10::Device exchangeDevice(c10::Device) const override { return {type, 0}; }
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, {type, 0}); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, {type, 0}); }
};

std::atomic<uint64_t> absent_types{0};   // bit by device type: those for which the guard above was put in

void stand_in_for(c10::DeviceType type) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& slot = c10::impl::device_guard_impl_registry[static_cast<size_t>(type)];
  if (slot.load()) return;
  switch (type) {
    case c10::DeviceType::CUDA: slot.store(new AbsentDeviceGuard<c10::DeviceType::CUDA>); break;
    case c10::DeviceType::XPU: slot.store(new AbsentDeviceGuard<c10::DeviceType::XPU>); break;
    case c10::DeviceType::MPS: slot.store(new AbsentDeviceGuard<c10::DeviceType::MPS>); break;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "fake tensors on ", c10::DeviceTypeName(type, true), " are not possible: this build of torch lacks the device");
  }
  absent_types |= uint64_t{1} << static_cast<int>(type);
}

c10::Device with_index(c10::Device d) {
  if (!d.is_cpu() && !d.is_meta() && !d.has_index()) d.set_index(0);
  return d;
}

void check_supported(const at::Tensor& t) {
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == at::kStrided, "a fake tensor of layout ", t.layout(), " is not possible: only strided tensors can be traced");
  TORCH_CHECK_NOT_IMPLEMENTED(!t.is_quantized(), "a fake tensor of the quantized dtype ", t.scalar_type(), " is not possible");
  TORCH_CHECK_NOT_IMPLEMENTED(!t.unsafeGetTensorImpl()->is_python_dispatch() || fake_impl(t), "a fake tensor of a Python tensor subclass is not possible");
}

void take_flags(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_conj()) to._set_conj(true);
  if (from.is_neg()) to._set_neg(true);
}

// Autograd lets a program write to a tensor with a history, and not to a leaf that requires grad: the fake must be of the same sort.
void take_history(const at::Tensor& t) {
  torch::autograd::set_history(t, make_node<torch::autograd::Error>("backward came to the beginning of a recording: a fake tensor has no history before it"));
}

at::Tensor fake_on_storage(const at::Tensor& like, c10::Storage storage, c10::Device device) {
  auto t = at::detail::make_tensor<FakeImpl>(std::move(storage), device, like.dtype());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  take_flags(like, t);
  if (like.requires_grad() && like.is_leaf()) t.set_requires_grad(true);
  else if (like.requires_grad()) take_history(t);
  return t;
}

}  // namespace

bool is_device_missing(c10::Device d) { return absent_types.load(std::memory_order_relaxed) >> static_cast<int>(d.type()) & 1; }
void refuse_backward(c10::Device d) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "backward on fake tensors of ", d.str(), " is refused: this build of torch lacks the device, and its autograd engine cannot run there");
}

// It throws when its data is asked for: else numpy() of a fake CPU tensor would show whatever lies in memory. It is not the meta
// tensor's storage, whose null address the meta kernels of in-place operators do read.
FakeStorage::FakeStorage(int64_t bytes, c10::Device device)
    : StorageImpl(use_byte_size_t(), static_cast<size_t>(bytes), c10::DataPtr(nullptr, device), nullptr, /*resizable=*/false) {
  release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(kNoData) + ": its values cannot be read while tracing");
}

FakeImpl::FakeImpl(c10::Storage storage, c10::Device device, caffe2::TypeMeta dtype)
    : TensorImpl(std::move(storage), keys_of(device), dtype) {
  device_opt_ = device;
}

FakeStorage& FakeImpl::note() const {
  auto* storage = storage_.unsafeGetStorageImpl();
  TORCH_CHECK_NOT_IMPLEMENTED(typeid(*storage) == typeid(FakeStorage), "a fake tensor was given the storage of a tensor that is not fake, which is refused");
  return static_cast<FakeStorage&>(*storage);
}

const at::Tensor& FakeImpl::meta() const {
  if (!meta_.defined()) {
    FakeStorage& note = this->note();
    if (note.meta) {
      const c10::InferenceMode normal(false);
      meta_ = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(note.meta), DispatchKeySet(DispatchKey::Meta), dtype());
      meta_.unsafeGetTensorImpl()->set_sizes_and_strides(sizes(), strides(), storage_offset());
    } else {
      meta_ = make_meta(at::typeMetaToScalarType(dtype()), sizes(), strides(), storage_offset());
      note.meta = meta_.storage();
      // Views of it may reach further than it does itself.
      if (const auto bytes = storage_.nbytes(); note.meta.nbytes() < bytes) note.meta.unsafeGetStorageImpl()->set_nbytes(bytes);
    }
    if (key_set_.has(DispatchKey::Conjugate)) meta_._set_conj(true);
    if (key_set_.has(DispatchKey::Negative)) meta_._set_neg(true);
  }
  return meta_;
}
void FakeImpl::set_meta(const at::Tensor& meta) {
  meta_ = meta;
  note().meta = meta.storage();
  follow_meta();
}
void FakeImpl::follow_meta() { set_sizes_and_strides(meta_.sizes(), meta_.strides(), meta_.storage_offset()); }
bool FakeImpl::differs_from_meta() const {
  return sizes() != meta_.sizes() || strides() != meta_.strides() || storage_offset() != meta_.storage_offset();
}

at::Tensor FakeImpl::constant() const {
  if (!has_constant()) return {};
  auto value = made_by_->result(made_as_);
  return value.defined() && value.sizes() == sizes() && value.scalar_type() == at::typeMetaToScalarType(dtype()) ? value : at::Tensor();
}

// detach, .data, saved variables and gradient accumulation copy the impl: the copy must be one of ours and share the storage.
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::copy(const c10::VariableVersion& version, bool allow_change) const {
  const SizesShown shown;
  auto r = c10::make_intrusive<FakeImpl>(storage_, *device_opt_, dtype());
  const c10::InferenceMode normal(false);
  if (meta_.defined()) r->meta_ = at::Tensor::wrap_tensor_impl(meta_.unsafeGetTensorImpl()->shallow_copy_and_detach(0, true));
  r->set_sizes_and_strides(sizes(), strides(), storage_offset());
  r->key_set_ = key_set_;
  r->made_by_ = made_by_;
  r->made_as_ = made_as_;
  if (unknown_) r->set_unknown(unknown_);
  if (is_wrapped_number()) r->set_wrapped_number(true);
  if (!r->is_inference()) r->set_version_counter(version);
  r->set_allow_tensor_metadata_change(allow_change);
  return r;
}
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(const c10::VariableVersion& v, bool allow) const { return copy(v, allow); }
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(c10::VariableVersion&& v, bool allow) const { return copy(v, allow); }

void FakeImpl::shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& other) {
  auto* o = dynamic_cast<FakeImpl*>(other.get());
  TORCH_CHECK(o, "a fake tensor cannot take the data of a tensor that is not fake");
  if (unknown_ || o->unknown_) throw_data_dependent("a tensor whose sizes follow from data is given other data");
  meta_ = o->meta();
  device_opt_ = o->device_opt_;
  storage_ = o->storage_;
  data_type_ = o->data_type_;
  made_by_ = o->made_by_;
  made_as_ = o->made_as_;
  follow_meta();
}

void FakeImpl::set_unknown(std::shared_ptr<const UnknownSizes> unknown) {
  unknown_ = std::move(unknown);
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
}
void FakeImpl::require_shown() const {
  if (!SizesShown::are()) throw_data_dependent("the size of a tensor, which follows from data, is asked for while it is traced");
}
at::IntArrayRef FakeImpl::sizes_custom() const { require_shown(); return sizes_default(); }
at::IntArrayRef FakeImpl::strides_custom() const { require_shown(); return strides_default(); }
int64_t FakeImpl::numel_custom() const { require_shown(); return numel_default(); }
c10::SymIntArrayRef FakeImpl::sym_sizes_custom() const {
  return SizesShown::are() ? c10::fromIntArrayRefKnownNonNegative(sizes_default()) : c10::SymIntArrayRef(unknown_->sizes);
}
c10::SymIntArrayRef FakeImpl::sym_strides_custom() const {
  return SizesShown::are() ? c10::fromIntArrayRefKnownNonNegative(strides_default()) : c10::SymIntArrayRef(unknown_->strides);
}
c10::SymInt FakeImpl::sym_numel_custom() const { return SizesShown::are() ? c10::SymInt(numel_default()) : unknown_->numel; }
// How it lies in memory is known where it is the same whatever the sizes are.
c10::SymBool FakeImpl::sym_is_contiguous_custom(at::MemoryFormat format) const {
  const bool own = is_contiguous_default(format);
  if (!SizesShown::are())
    for (const at::Tensor& t : unknown_->worlds)
      if (t.defined() && t.unsafeGetTensorImpl() != this && static_cast<const FakeImpl*>(t.unsafeGetTensorImpl())->is_contiguous_default(format) != own) require_shown();
  return own;
}
c10::SymBool FakeImpl::sym_is_non_overlapping_and_dense_custom() const { require_shown(); return is_non_overlapping_and_dense_default(); }
bool FakeImpl::is_strides_like_custom(at::MemoryFormat format) const { require_shown(); return is_strides_like_default(format); }

FakeImpl* fake_impl(const at::Tensor& t) {
  if (!t.defined() || !t.key_set().has(kBelowKey)) return nullptr;
  auto* impl = t.unsafeGetTensorImpl();
  return typeid(*impl) == typeid(FakeImpl) ? static_cast<FakeImpl*>(impl) : nullptr;   // not by the key alone: a functional wrapper copies it
}

at::Tensor make_fresh_fake(at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides, c10::Device device) {
  auto t = at::detail::make_tensor<FakeImpl>(storage_without_data(bytes_needed(sizes, strides, 0, c10::elementSize(dtype)), device), device,
                                             c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return t;
}

at::Tensor wrap_fresh(const at::Tensor& meta, c10::Device device) {
  check_supported(meta);
  auto t = at::detail::make_tensor<FakeImpl>(storage_without_data(static_cast<int64_t>(meta.storage().nbytes()), device), device, meta.dtype());
  fake_impl(t)->set_meta(meta);
  take_flags(meta, t);
  return t;
}

at::Tensor wrap_view(const at::Tensor& meta, const at::Tensor& base) {
  check_supported(meta);
  const c10::InferenceMode as_base(base.is_inference() && c10::InferenceMode::is_enabled());   // a view of a normal tensor is normal in inference mode too
  auto t = at::detail::make_tensor<FakeImpl>(base.storage(), base.device(), meta.dtype());
  fake_impl(t)->set_meta(meta);
  take_flags(meta, t);
  return t;
}

at::Tensor make_fake(const at::Tensor& like) { return make_fake(like, like.device()); }

at::Tensor make_fake(const at::Tensor& like, c10::Device device) {
  TORCH_CHECK(like.defined(), "an undefined tensor has no metadata to make a fake tensor of");
  check_supported(like);
  device = with_index(device);
  stand_in_for(device.type());
  return fake_on_storage(like, storage_without_data(static_cast<int64_t>(like.storage().nbytes()), device), device);
}

at::Tensor make_view(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  const c10::InferenceMode as_base(base.is_inference() && c10::InferenceMode::is_enabled());   // as in wrap_view
  auto t = at::detail::make_tensor<FakeImpl>(base.storage(), base.device(), base.dtype());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  take_flags(base, t);
  return t;
}

at::Tensor make_fake(const at::Tensor& like, at::IntArrayRef sizes) {
  check_supported(like);
  TORCH_CHECK_VALUE(like.dim() == static_cast<int64_t>(sizes.size()), "a tensor of ", like.dim(), " dimensions cannot be given ", sizes.size(), " sizes");
  // Innermost first: by stride, and where two are equal (a size of 1) by position.
  std::vector<int64_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return like.stride(a) < like.stride(b); });
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1, step_before = 1;
  for (const int64_t d : order) {
    const bool is_expanded = like.stride(d) == 0 && like.size(d) != 1;
    TORCH_CHECK_NOT_IMPLEMENTED(is_expanded || like.size(d) <= 1 || like.stride(d) == step_before,
                                "a tensor of sizes ", like.sizes(), " and strides ", like.strides(), " cannot have other sizes: its elements do not lie one after the other");
    strides[d] = is_expanded ? 0 : step;
    if (is_expanded) continue;
    step *= std::max<int64_t>(sizes[d], 1);
    step_before *= std::max<int64_t>(like.size(d), 1);
  }
  const auto device = with_index(like.device());
  stand_in_for(device.type());
  auto t = make_fresh_fake(like.scalar_type(), sizes, strides, device);
  take_flags(like, t);
  if (like.requires_grad() && like.is_leaf()) t.set_requires_grad(true);
  else if (like.requires_grad()) take_history(t);
  return t;
}

struct FakeMaker::State {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> made;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages;
};
FakeMaker::FakeMaker() : state_(std::make_unique<State>()) {}
FakeMaker::~FakeMaker() = default;

at::Tensor FakeMaker::make(const at::Tensor& t) {
  if (!t.defined()) return t;
  if (auto it = state_->made.find(t.unsafeGetTensorImpl()); it != state_->made.end()) return it->second;
  check_supported(t);
  const auto device = with_index(t.device());
  stand_in_for(device.type());
  const auto bytes = static_cast<int64_t>(t.storage().nbytes());
  auto [shared, fresh] = state_->storages.try_emplace(t.storage().unsafeGetStorageImpl());
  if (fresh) shared->second = storage_without_data(bytes, device);
  auto fake = fake_on_storage(t, shared->second, device);
  return state_->made.emplace(t.unsafeGetTensorImpl(), std::move(fake)).first->second;
}

std::vector<at::Tensor> make_fakes(const std::vector<at::Tensor>& like) {
  FakeMaker maker;
  std::vector<at::Tensor> result;
  result.reserve(like.size());
  for (const auto& t : like) result.push_back(maker.make(t));
  return result;
}

bool is_fake(const at::Tensor& t) { return fake_impl(t) != nullptr; }

void require_backward_device(const std::vector<at::Tensor>& tensors) {
  for (const auto& t : tensors)
    if (fake_impl(t) && is_device_missing(t.device())) refuse_backward(t.device());
}

namespace {
thread_local std::string last_data_dependence;
thread_local int fake_modes = 0;
thread_local std::unordered_map<const c10::StorageImpl*, c10::Storage> written_constants;   // held, so that no address is used twice
}

void throw_data_dependent(std::string message) {
  last_data_dependence = message;
  throw DataDependentError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(message));
}
bool is_data_dependent_message(const std::string& message) { return !last_data_dependence.empty() && message.starts_with(last_data_dependence); }

void mark_constant_written(const at::Tensor& t) {
  if (t.has_storage()) written_constants.emplace(t.storage().unsafeGetStorageImpl(), t.storage());
}
bool is_constant_written(const at::Tensor& t) { return !written_constants.empty() && t.has_storage() && written_constants.contains(t.storage().unsafeGetStorageImpl()); }

FakeMode::FakeMode()
    : was_included_(c10::impl::tls_is_dispatch_key_included(kBelowKey)),
      threads_(c10::AutogradState::get_tls_state().get_multithreading_enabled()),
      profiles_(at::isRecordFunctionEnabled()),
      hooks_(at::SavedTensorDefaultHooks::get_tls_state()) {
  ++fake_modes;
  c10::impl::tls_set_dispatch_key_included(kBelowKey, true);
  // Nodes of another device would run on another thread, which lacks this thread's state.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  at::enableRecordFunction(false);
  at::SavedTensorDefaultHooks::set_tls_state({});
}
FakeMode::~FakeMode() {
  if (--fake_modes == 0) written_constants.clear();
  c10::impl::tls_set_dispatch_key_included(kBelowKey, was_included_);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(threads_);
  at::enableRecordFunction(profiles_);
  at::SavedTensorDefaultHooks::set_tls_state(hooks_);
}
bool FakeMode::is_active() { return fake_modes > 0; }

}  // namespace cutaway::trace
