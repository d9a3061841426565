#include "compiler/native/kernel_call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/util/SmallVector.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "compiler/kernels/gemm.h"
#include "compiler/native/conv_call.h"
#include "compiler/native/pool.h"
#include "core/ir/edit.h"

namespace cutaway::native {
namespace {

constexpr int64_t kGrain = 16384;   ///< elements for which a thread is worth waking

}  // namespace

ir::Graph region_graph(const ir::Graph& fused, const ir::Node& call) {
  ir::Graph g;
  g.values = fused.values;
  g.locations = fused.locations;
  g.name = call.target;
  for (const ir::Argument& a : call.args) g.inputs.push_back({a.as<ir::ValueRef>()->id});
  g.body = call.regions[0];
  ir::renumber(g, ir::Names::keep);
  return g;
}

bool is_plain(const at::Tensor& x) {
  using K = c10::DispatchKey;
  constexpr auto known = c10::DispatchKeySet({K::CPU, K::CUDA, K::AutogradCPU, K::AutogradCUDA, K::AutocastCPU, K::AutocastCUDA, K::ADInplaceOrView});
  return x.defined() && ((x.key_set() - known).raw_repr() & ~c10::full_backend_mask) == 0 && x.layout() == c10::kStrided;
}

bool somebody_watches() {
  using K = c10::DispatchKey;
  constexpr auto modes = c10::DispatchKeySet({K::Python, K::PythonDispatcher, K::Functionalize, K::FuncTorchDynamicLayerFrontMode, K::FuncTorchDynamicLayerBackMode, K::FuncTorchVmapMode, K::FuncTorchBatched, K::FuncTorchGradWrapper});
  return c10::impl::tls_local_dispatch_key_set().included_.has_any(modes);
}

KernelCall::KernelCall(Body body, const codegen::Program& program, const ir::Node& call, const std::vector<codegen::Buffer>& buffers, std::vector<int64_t> alignment, std::vector<int64_t> sizes, bool checks_indices) : body_(std::move(body)), checks_indices_(checks_indices), sizes_(std::move(sizes)), program_(program), fused_(program.graph), call_(call) {
  const size_t read_count = static_cast<size_t>(std::count_if(buffers.begin(), buffers.end(), [](const codegen::Buffer& b) { return !b.is_written; }));
  for (const codegen::Buffer& b : buffers) {
    const ir::TensorType& t = fused_.value(b.value).type.tensor;
    Tensor tensor{static_cast<c10::ScalarType>(t.dtype), c10::Device(t.device.text()), {}, {}};
    if (!alignment.empty()) tensor.alignment = alignment[order_.size()];
    for (const ir::Dim& d : t.sizes) tensor.sizes.push_back(d.value());
    for (const ir::Dim& d : t.strides) tensor.strides.push_back(d.value());
    if (b.is_written)
      for (const codegen::MemoryPlan::Place& p : program.memory.places)
        if (p.value == b.value) tensor.offset = p.offset / static_cast<int64_t>(c10::elementSize(tensor.dtype));
    order_.push_back(b.is_written ? read_count + writes_.size() : reads_.size());
    (b.is_written ? writes_ : reads_).push_back(std::move(tensor));
  }
}
KernelCall::~KernelCall() = default;

/// Operators before may have laid out their results otherwise than was recorded. Where a size is 1 strides do not count.
bool KernelCall::are_as_expected(const std::vector<c10::IValue>& given) const {
  if (given.size() < reads_.size() || somebody_watches()) return false;   // more: what the operators alone ask for
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (!given[i].isTensor()) return false;
    const at::Tensor& x = given[i].toTensor();
    const Tensor& want = reads_[i];
    if (!is_plain(x) || x.scalar_type() != want.dtype || x.device() != want.device || x.sizes() != want.sizes) return false;
    const auto strides = x.strides();
    for (size_t d = 0; d < want.sizes.size(); ++d)
      if (want.sizes[d] > 1 && strides[d] != want.strides[d]) return false;
    if (want.alignment > 1 && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % static_cast<uintptr_t>(want.alignment) != 0) return false;
  }
  return true;
}

void KernelCall::run_region(std::vector<c10::IValue>& stack) const {
  {
    std::lock_guard lock(mutex_);
    if (!operators_) {
      auto prepared = exec::Program::prepare(region_graph(fused_, call_));
      TORCH_CHECK(prepared.ok(), "a kernel's operators cannot be run: ", prepared.ok() ? "" : prepared.error().text());
      operators_.emplace(std::move(*prepared));
    }
  }
  std::vector<c10::IValue> results = operators_->run(stack);
  stack = std::move(results);
}

/// In the memory of the run, where the plan has a place for it there; else on its own.
at::Tensor KernelCall::make(const Tensor& t, const c10::Storage* arena) {
  const c10::DispatchKeySet cpu(c10::DispatchKey::CPU);
  if (!t.device.is_cpu()) return at::empty_strided(t.sizes, t.strides, at::TensorOptions(t.dtype).device(t.device));
  if (!arena || t.offset < 0) return at::Tensor(at::detail::empty_strided_generic(t.sizes, t.strides, &pool(), cpu, t.dtype));
  at::Tensor x = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(*arena), cpu, c10::scalarTypeToTypeMeta(t.dtype));
  x.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes, t.strides, t.offset);
  return x;
}

void KernelCall::run(std::vector<c10::IValue>& stack) const {
  if (!are_as_expected(stack)) {
    run_region(stack);
    return;
  }
  constexpr size_t kFew = 64;
  void* few[kFew];
  std::vector<void*> many;
  void** buffers = few;
  if (order_.size() + 3 > kFew) {
    many.resize(order_.size() + 3);
    buffers = many.data();
  }
  std::vector<at::Tensor> results;
  results.reserve(writes_.size());
  const c10::Storage* arena = Arena::of(&program_);
  for (const Tensor& w : writes_) results.push_back(make(w, arena));
  for (size_t i = 0; i < order_.size(); ++i)
    buffers[i] = order_[i] < reads_.size() ? const_cast<void*>(stack[order_[i]].toTensor().const_data_ptr()) : results[order_[i] - reads_.size()].mutable_data_ptr();
  buffers[order_.size()] = const_cast<int64_t*>(sizes_.data());
  int bad = 0;
  buffers[order_.size() + 1] = &bad;
  std::shared_ptr<const void> packed;
  if (frozen_) packed = frozen_->get(stack[frozen_read_].toTensor());
  buffers[order_.size() + 2] = const_cast<void*>(packed.get());
  body_(buffers);
  if (checks_indices_ && bad) {   // the operators say which index, in eager's words
    run_region(stack);
    return;
  }
  stack.clear();
  for (at::Tensor& r : results) stack.emplace_back(std::move(r));
}

void KernelCall::freeze(uint32_t number, std::unique_ptr<FrozenWeight> weight) {
  frozen_read_ = order_[number];
  frozen_ = std::move(weight);
}

KernelCall::Body loop_body(std::shared_ptr<Library> library, void (*function)(void* const*, int64_t, int64_t), codegen::Work work) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work.unit_elements));
  return [library = std::move(library), function, work, grain](void* const* buffers) {
    if (work.units <= grain) function(buffers, 0, work.units);
    else at::parallel_for(0, work.units, grain, [&](int64_t begin, int64_t end) { function(buffers, begin, end); });
  };
}

void spread_over_threads(void*, int64_t parts, void (*body)(void*, int64_t), void* context) {
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(context, i);
  });
}

namespace {

struct Epilogue { EpilogueFunction function; void* const* buffers; int64_t rows; };   ///< rows: of one matrix of a batch

template <class T> void run_epilogue(const void* context, const kernels::TileOf<T>& t) {
  const Epilogue& e = *static_cast<const Epilogue*>(context);
  const int64_t row = t.batch * e.rows + t.row;
  e.function(e.buffers, row, row + t.rows, t.column, t.column + t.columns);
}

template <class T> void multiply(const codegen::Product& p, EpilogueFunction function, void* const* buffers) {
  const auto at = [&](const codegen::Product::Operand& o) { return static_cast<T*>(buffers[o.buffer]) + o.offset; };
  kernels::OptionsOf<T> options;
  if (p.bias) options.bias = at(*p.bias);
  options.packed = static_cast<const T*>(buffers[p.buffers.size() + 2]);
  c10::SmallVector<void*, 16> own;
  for (uint32_t b : p.epilogue_buffers) own.push_back(buffers[b]);
  own.push_back(buffers[p.buffers.size()]);   // the sizes that a text for every size reads
  const Epilogue epilogue{function, own.data(), p.m};
  if (function) {
    options.epilogue = run_epilogue<T>;
    options.context = &epilogue;
  }
  const kernels::Parallel parallel{spread_over_threads, nullptr, at::in_parallel_region() ? 1 : at::get_num_threads()};
  if (p.window) {
    kernels::convolve(conv_shape(*p.window, p.batch, p.m), at(p.b), at(p.a), options.bias, at(p.c), kernels::ConvolutionEpilogue<T>{options.epilogue, options.context}, parallel);
    return;
  }
  const kernels::Batches batches{p.batch, p.a.batch, p.b.batch, p.c.batch, 0};
  kernels::batched_gemm(batches, p.m, p.n, p.k, kernels::MatrixOf<T>{at(p.a), p.a.row, p.a.column}, kernels::MatrixOf<T>{at(p.b), p.b.row, p.b.column}, at(p.c), p.c.row, options, parallel);
}

}  // namespace

namespace {

template <class T> std::unique_ptr<FrozenWeight> frozen_weight_of(const codegen::Product& p) {
  const auto matrix = [b = p.b](const void* data) { return kernels::MatrixOf<T>{static_cast<const T*>(data) + b.offset, b.row, b.column}; };
  const int64_t elements = kernels::pack_weight(p.m, p.n, p.k, matrix(nullptr));
  if (elements == 0) return nullptr;
  return std::make_unique<FrozenWeight>(static_cast<size_t>(elements) * sizeof(T), [matrix, m = p.m, n = p.n, k = p.k](const void* data, void* out) { kernels::pack_weight(m, n, k, matrix(data), static_cast<T*>(out)); });
}

}  // namespace

std::unique_ptr<FrozenWeight> frozen_weight(const codegen::Product& p) {
  if (p.window || p.batch != 1) return nullptr;   // a convolution reads its weight as it lies
  return p.dtype == ir::DType::f32 ? frozen_weight_of<float>(p) : frozen_weight_of<double>(p);
}

KernelCall::Body product_body(const codegen::Product& product, std::shared_ptr<Library> library, EpilogueFunction function) {
  return [product, library = std::move(library), function](void* const* buffers) {
    if (product.dtype == ir::DType::f32) multiply<float>(product, function, buffers);
    else multiply<double>(product, function, buffers);
  };
}

}  // namespace cutaway::native
