#include "compiler/native/cuda_graph.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>

#include "compiler/native/cuda_driver.h"
#include "compiler/native/kernel_call.h"

namespace cutaway::native {
namespace {

using c10::IValue;

constexpr int kPlainCalls = 2;          ///< before anything is recorded: libraries choose their kernels, and what runs once is not worth it
constexpr int kMostRecordings = 8;      ///< of one half; what moves more often than that goes by single launches
constexpr int kMostAlive = 64;          ///< recordings of a process: each holds the memory of its run
constexpr int64_t kCheap = 1 << 20;     ///< bytes of an input that is copied rather than waited for

const c10::impl::DeviceGuardImplInterface& torch_cuda() { return *c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA); }

/// Streams of a device: recordings are made on one of our own and played back on one of the program's, the first that asked. Workspaces of libraries lie at
/// addresses that a recording holds: two that ran at the same time would share them.
struct DeviceStreams {
  std::optional<c10::Stream> side, owner;
};
struct Shared {
  std::mutex mutex;
  std::map<c10::DeviceIndex, DeviceStreams> streams;
  GraphRunner::Counts counts;
  std::deque<std::string> reasons;
  std::mutex recording;   ///< one at a time
  std::atomic<int> alive{0};
};
Shared& shared() {
  static Shared* all = new Shared;   // never destroyed: the driver may be gone at exit
  return *all;
}
c10::Stream side_stream(c10::Device d) {
  std::lock_guard lock(shared().mutex);
  auto& side = shared().streams[d.index()].side;
  if (!side) side = torch_cuda().getStreamFromGlobalPool(d, false);
  return *side;
}
/// True when recordings of the device are played back on this stream, or on none yet.
bool is_owner(const c10::Stream& stream) {
  std::lock_guard lock(shared().mutex);
  const auto& owner = shared().streams[stream.device_index()].owner;
  return !owner || *owner == stream;
}
bool become_owner(const c10::Stream& stream) {
  std::lock_guard lock(shared().mutex);
  auto& owner = shared().streams[stream.device_index()].owner;
  if (!owner) owner = stream;
  return *owner == stream;
}

bool is_capturing(const c10::Stream& stream) {
  int status = 0;
  return !cuda_driver().ok() || cuda_driver()->is_capturing(torch_cuda().getStreamNativeHandle(stream), &status) != 0 || status != 0;
}

class StreamScope {
 public:
  explicit StreamScope(const c10::Stream& stream) : before_(torch_cuda().exchangeStream(stream)) {}
  ~StreamScope() { torch_cuda().exchangeStream(before_); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  c10::Stream before_;
};

/// Settings that libraries ask for when they choose a kernel: a recording holds the choice.
std::string library_settings() {
  const at::Context& c = at::globalContext();
  std::string s;
  for (const bool b : {c.deterministicAlgorithms(), c.deterministicCuDNN(), c.benchmarkCuDNN(), c.userEnabledCuDNN(), c.userEnabledFlashSDP(), c.userEnabledMemEfficientSDP(), c.userEnabledMathSDP(), c.userEnabledCuDNNSDP(), at::GradMode::is_enabled()}) s += b ? '1' : '0';
  s += static_cast<char>('0' + static_cast<int>(c.float32MatmulPrecision()));
  s += static_cast<char>('0' + static_cast<int>(c.allowFP16ReductionCuBLAS()));
  s += static_cast<char>('0' + static_cast<int>(c.allowBF16ReductionCuBLAS()));
  return s;
}

/// The memory of a storage as a row of numbers, as wide as it goes.
at::Tensor raw(const c10::Storage& storage) {
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  const bool wide = bytes % 8 == 0;
  at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), wide ? caffe2::TypeMeta::Make<int64_t>() : caffe2::TypeMeta::Make<uint8_t>());
  t.unsafeGetTensorImpl()->set_sizes_contiguous({wide ? bytes / 8 : bytes});
  return t;
}

void copy_all(std::vector<at::Tensor>& to, std::vector<at::Tensor>& from) {
  if (to.size() == 1) to[0].copy_(from[0], /*non_blocking=*/true);
  else if (!to.empty()) at::_foreach_copy_(to, from, /*non_blocking=*/true);
}

}  // namespace

/// Where an output of a recording is found after it was played back.
struct GraphRunner::Recording {
  struct Output {
    enum class From : uint8_t { none, input, view_of_input, memory } from = From::none;
    size_t index = 0;            ///< of the input, or of the storage
    at::Tensor tensor;           ///< as it was recorded: memory and view_of_input
    int64_t offset = 0;          ///< view_of_input: from where the input begins
    bool is_hidden = false;
  };
  struct Memory { c10::Storage storage; at::Tensor whole; int64_t own_uses = 0; bool is_copied = false, is_given = false; };
  std::vector<const void*> addresses;         ///< by input
  std::vector<at::Tensor> buffers;            ///< by input: where a copied one goes
  std::vector<Output> outputs;
  std::vector<Memory> memory;
  std::string settings;
  std::unique_ptr<TorchGraph> graph;          ///< last: its memory is that of the outputs

  Recording() { ++shared().alive; }
  ~Recording() { --shared().alive; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Somebody holds what an earlier run gave as it is.
  bool is_busy() const {
    return std::ranges::any_of(memory, [](const Memory& m) { return m.is_given && static_cast<int64_t>(m.storage.use_count()) > m.own_uses; });
  }
};

GraphRunner::GraphRunner(const ir::Graph& graph, size_t hidden, debug::Sink* sink) : hidden_(hidden), output_count_(graph.body.outputs.size()), reason_(why_not_recorded(graph)) {
  if (reason_.empty()) {
    for (const ir::Input& in : graph.inputs) {
      const ir::TensorType& t = graph.value(in.value).type.tensor;
      Input x{static_cast<c10::ScalarType>(t.dtype), {}, {}};
      int64_t bytes = ir::dtype_bytes(t.dtype);
      for (const ir::Dim& d : t.sizes) x.sizes.push_back(*d.number()), bytes *= *d.number();
      for (const ir::Dim& d : t.strides) x.strides.push_back(*d.number());
      x.bytes = bytes;
      inputs_.push_back(std::move(x));
      device_ = c10::Device(t.device.text());
    }
  } else {
    give_up(reason_);
  }
  if (!reason_.empty()) debug::decide(sink, "native", "graph", reason_, {{"what", std::string_view(graph.name)}, {"done", false}}, debug::Level::debug);
}
GraphRunner::~GraphRunner() = default;

void GraphRunner::give_up(std::string reason) {
  std::lock_guard lock(shared().mutex);
  shared().reasons.push_back(reason);
  if (shared().reasons.size() > 32) shared().reasons.pop_front();
  reason_ = std::move(reason);
  has_given_up_.store(true, std::memory_order_release);
}

std::string GraphRunner::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}
GraphRunner::Counts GraphRunner::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

bool GraphRunner::takes(const std::vector<IValue>& inputs) const {
  if (inputs.size() != inputs_.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensor()) return false;
    const at::Tensor& x = inputs[i].toTensor();
    const Input& want = inputs_[i];
    if (!is_plain(x) || x.scalar_type() != want.dtype || x.device() != device_ || x.sizes() != want.sizes || x.strides() != want.strides) return false;
  }
  return true;
}

std::vector<IValue> GraphRunner::plain(const exec::Program& program, std::vector<IValue>& inputs, const c10::Stream& stream) {
  std::vector<IValue> outputs = program.run(inputs);
  // What a recording gave may have been read here, on another stream than the one that will write to it next.
  if (!is_capturing(stream) && !is_owner(stream)) torch_cuda().synchronizeStream(stream);
  return outputs;
}

std::vector<IValue> GraphRunner::run(const exec::Program& program, std::vector<IValue>& inputs) {
  if (has_given_up_.load(std::memory_order_acquire) || somebody_watches()) return program.run(inputs);
  const c10::DeviceGuard guard(device_);
  const c10::Stream stream = torch_cuda().getStream(device_);
  if (is_capturing(stream)) return program.run(inputs);   // the program records by itself: our launches become a part of that
  // Nobody waits here: the caller may hold Python's lock, which another thread may need to come to an end.
  std::unique_lock lock(mutex_, std::try_to_lock);
  const auto one_by_one = [&] {
    if (lock.owns_lock()) {
      ++counts_.plain;
      lock.unlock();
    }
    return plain(program, inputs, stream);
  };
  if (!lock.owns_lock() || !takes(inputs) || !is_owner(stream)) return one_by_one();
  if (recording_ && recording_->is_busy()) return one_by_one();
  if (recording_) {
    size_t moved = 0, direct = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].is_copied) continue;
      ++direct;
      moved += inputs[i].toTensor().const_data_ptr() != recording_->addresses[i];
    }
    const bool same_settings = recording_->settings == library_settings();
    if (moved == 0 && same_settings) return replay(inputs, stream);
    // Few that moved will move again: they are copied from now on. Many: what makes them has moved as a whole.
    const bool as_a_whole = moved > 8 && moved * 4 > direct;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Input& x = inputs_[i];
      if (x.is_copied || inputs[i].toTensor().const_data_ptr() == recording_->addresses[i]) continue;
      ++x.moved;
      x.is_copied = x.moved > 2 || (!as_a_whole && (x.bytes <= kCheap || x.moved > 1));
    }
    recording_.reset();
    if (records_ >= kMostRecordings) {
      give_up("inputs lie elsewhere at each call, or settings change");
      return one_by_one();
    }
  }
  if (++calls_ <= kPlainCalls) return one_by_one();
  if (calls_ == kPlainCalls + 1) return warm_up(program, inputs, stream);
  std::unique_lock one(shared().recording, std::try_to_lock);
  if (!one.owns_lock() || shared().alive >= kMostAlive || !become_owner(stream)) return one_by_one();
  try {
    record(program, inputs);
  } catch (const std::exception& e) {
    recording_.reset();
    give_up(std::string("recording failed: ") + e.what());
    one.unlock();
    return one_by_one();
  }
  one.unlock();
  return replay(inputs, stream);
}

/// A real call on the stream that recordings are made on: libraries have their handles and workspaces for it afterwards.
std::vector<IValue> GraphRunner::warm_up(const exec::Program& program, std::vector<IValue>& inputs, const c10::Stream& stream) {
  ++counts_.plain;
  const c10::Stream side = side_stream(device_);
  torch_cuda().synchronizeStream(stream);
  std::vector<IValue> outputs;
  try {
    const StreamScope scope(side);
    outputs = program.run(inputs);
  } catch (...) {
    torch_cuda().synchronizeStream(side);
    throw;
  }
  torch_cuda().synchronizeStream(side);
  for (IValue& o : outputs)   // made on the other stream: theirs are to be the caller's
    if (o.isTensor() && o.toTensor().defined()) torch_cuda().recordDataPtrOnStream(o.toTensor().storage().data_ptr(), stream);
  return outputs;
}

void GraphRunner::record(const exec::Program& program, const std::vector<IValue>& given) {
  auto graph = TorchGraph::make();
  TORCH_CHECK(graph.ok(), graph.ok() ? "" : graph.error().text());
  auto r = std::make_unique<Recording>();
  r->settings = library_settings();
  std::vector<IValue> inputs = given;
  r->buffers.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i].is_copied) {
      r->buffers[i] = at::empty_strided(inputs_[i].sizes, inputs_[i].strides, at::TensorOptions(inputs_[i].dtype).device(device_));
      inputs[i] = r->buffers[i];
    }
    r->addresses.push_back(inputs[i].toTensor().const_data_ptr());
  }
  const std::vector<IValue> read = inputs;   // the run empties its own
  torch_cuda().synchronizeDevice(device_.index());
  std::vector<IValue> values;
  {
    const StreamScope scope(side_stream(device_));
    (*graph)->begin();
    try {
      values = program.run(inputs);
    } catch (...) {
      try {
        (*graph)->end();
      } catch (const std::exception&) {   // the first error tells more
      }
      throw;
    }
    (*graph)->end();
  }
  ++records_;
  ++counts_.recorded;
  std::map<const c10::StorageImpl*, size_t> input_of, memory_of;
  for (size_t i = 0; i < read.size(); ++i) input_of.try_emplace(read[i].toTensor().storage().unsafeGetStorageImpl(), i);
  for (size_t o = 0; o < values.size(); ++o) {
    Recording::Output out;
    out.is_hidden = o + hidden_ >= values.size();
    if (values[o].isTensor() && values[o].toTensor().defined()) {
      at::Tensor t = values[o].toTensor();
      const c10::StorageImpl* storage = t.storage().unsafeGetStorageImpl();
      bool found = false;
      for (size_t i = 0; i < read.size() && !found; ++i) {
        if (t.unsafeGetTensorImpl() != read[i].toTensor().unsafeGetTensorImpl()) continue;
        found = true;
        out.from = Recording::Output::From::input;
        out.index = i;
      }
      if (!found && input_of.contains(storage)) {
        found = true;
        out.from = Recording::Output::From::view_of_input;
        out.index = input_of.at(storage);
        out.offset = t.storage_offset() - read[out.index].toTensor().storage_offset();
        out.tensor = t;
        TORCH_CHECK(t.scalar_type() == inputs_[out.index].dtype, "an output is an input looked at as another dtype");
      }
      if (!found) {
        out.from = Recording::Output::From::memory;
        const auto [it, is_new] = memory_of.try_emplace(storage, r->memory.size());
        if (is_new) r->memory.push_back({t.storage(), raw(t.storage())});
        out.index = it->second;
        out.tensor = t;
        (out.is_hidden ? r->memory[out.index].is_given : r->memory[out.index].is_copied) = true;
      }
    } else {
      TORCH_CHECK(values[o].isNone() || values[o].isTensor(), "an output that is no tensor");
    }
    r->outputs.push_back(std::move(out));
  }
  values.clear();
  for (Recording::Memory& m : r->memory) m.own_uses = static_cast<int64_t>(m.storage.use_count());
  r->graph = std::move(*graph);
  recording_ = std::move(r);
  std::lock_guard lock(shared().mutex);
  ++shared().counts.recorded;
}

std::vector<IValue> GraphRunner::replay(std::vector<IValue>& inputs, const c10::Stream& stream) {
  Recording& r = *recording_;
  std::vector<at::Tensor> to, from;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].is_copied) continue;
    to.push_back(r.buffers[i]);
    from.push_back(inputs[i].toTensor());
  }
  copy_all(to, from);
  r.graph->replay();
  ++counts_.replayed;
  to.clear();
  from.clear();
  std::vector<c10::Storage> fresh(r.memory.size());
  const CudaDriver& driver = *cuda_driver();
  for (size_t m = 0; m < r.memory.size(); ++m) {
    if (!r.memory[m].is_copied) continue;
    at::Tensor whole = at::empty(r.memory[m].whole.sizes(), r.memory[m].whole.options());
    fresh[m] = whole.storage();
    to.push_back(std::move(whole));
    from.push_back(r.memory[m].whole);
  }
  if (to.size() <= 3) {   // cheaper than a kernel of torch's
    void* handle = torch_cuda().getStreamNativeHandle(stream);
    for (size_t i = 0; i < to.size(); ++i)
      if (const size_t bytes = to[i].nbytes()) {
        const int code = driver.copy(reinterpret_cast<uint64_t>(to[i].mutable_data_ptr()), reinterpret_cast<uint64_t>(from[i].const_data_ptr()), bytes, handle);
        TORCH_CHECK(code == 0, "CUDA error: ", driver.error(code), " (copying results)");
      }
  } else {
    copy_all(to, from);
  }
  std::vector<IValue> outputs;
  outputs.reserve(r.outputs.size());
  for (const Recording::Output& o : r.outputs) {
    using From = Recording::Output::From;
    switch (o.from) {
      case From::none: outputs.emplace_back(); break;
      case From::input: outputs.push_back(inputs[o.index]); break;
      case From::view_of_input: {
        const at::Tensor& x = inputs[o.index].toTensor();
        outputs.emplace_back(x.as_strided(o.tensor.sizes(), o.tensor.strides(), x.storage_offset() + o.offset));
        break;
      }
      case From::memory: {
        const at::Tensor& t = o.tensor;
        at::Tensor given = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(o.is_hidden ? t.storage() : fresh[o.index]), t.key_set(), t.dtype());
        given.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
        outputs.emplace_back(std::move(given));
        break;
      }
    }
  }
  inputs.clear();
  std::lock_guard lock(shared().mutex);
  ++shared().counts.replayed;
  return outputs;
}

GraphRunner::Counts cuda_graph_counts() {
  std::lock_guard lock(shared().mutex);
  return shared().counts;
}
std::vector<std::string> cuda_graph_reasons() {
  std::lock_guard lock(shared().mutex);
  return {shared().reasons.begin(), shared().reasons.end()};
}

}  // namespace cutaway::native
