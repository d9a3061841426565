#include "compiler/native/kernel_call.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

namespace cutaway::native {
namespace {

constexpr int64_t kGrain = 16384;   ///< elements for which a thread is worth waking

}  // namespace

KernelCall::KernelCall(std::shared_ptr<Library> library, Function function, codegen::Work work, const ir::Graph& fused, const codegen::Kernel& kernel, ir::Graph region)
    : library_(std::move(library)), function_(function), work_(work), region_(std::move(region)) {
  const size_t read_count = static_cast<size_t>(std::count_if(kernel.buffers.begin(), kernel.buffers.end(), [](const codegen::Buffer& b) { return !b.is_written; }));
  for (const codegen::Buffer& b : kernel.buffers) {
    const ir::TensorType& t = fused.value(b.value).type.tensor;
    Tensor tensor{static_cast<c10::ScalarType>(t.dtype), {}, {}};
    for (const ir::Dim& d : t.sizes) tensor.sizes.push_back(d.value());
    for (const ir::Dim& d : t.strides) tensor.strides.push_back(d.value());
    order_.push_back(b.is_written ? read_count + writes_.size() : reads_.size());
    (b.is_written ? writes_ : reads_).push_back(std::move(tensor));
  }
}
KernelCall::~KernelCall() = default;

/// Operators before may have laid out their results otherwise than was recorded. Where a size is 1 strides do not count.
bool KernelCall::are_as_expected(const std::vector<c10::IValue>& given) const {
  if (given.size() != reads_.size()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].isTensor()) return false;
    const at::Tensor& x = given[i].toTensor();
    const Tensor& want = reads_[i];
    if (!x.defined() || x.scalar_type() != want.dtype || !x.device().is_cpu() || x.layout() != c10::kStrided || x.is_neg() || x.is_conj() || x.sizes() != want.sizes) return false;
    const auto strides = x.strides();
    for (size_t d = 0; d < want.sizes.size(); ++d)
      if (want.sizes[d] > 1 && strides[d] != want.strides[d]) return false;
  }
  return true;
}

void KernelCall::run_region(std::vector<c10::IValue>& stack) const {
  {
    std::lock_guard lock(mutex_);
    if (!operators_) {
      auto prepared = exec::Program::prepare(region_);
      TORCH_CHECK(prepared.ok(), "a kernel's operators cannot be run: ", prepared.ok() ? "" : prepared.error().text());
      operators_.emplace(std::move(*prepared));
    }
  }
  std::vector<c10::IValue> results = operators_->run(stack);
  stack = std::move(results);
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
  if (order_.size() > kFew) {
    many.resize(order_.size());
    buffers = many.data();
  }
  std::vector<at::Tensor> results;
  results.reserve(writes_.size());
  for (const Tensor& w : writes_) results.push_back(at::empty_strided(w.sizes, w.strides, at::TensorOptions(w.dtype)));
  for (size_t i = 0; i < order_.size(); ++i)
    buffers[i] = order_[i] < reads_.size() ? const_cast<void*>(stack[order_[i]].toTensor().const_data_ptr()) : results[order_[i] - reads_.size()].mutable_data_ptr();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work_.unit_elements));
  if (work_.units <= grain) function_(buffers, 0, work_.units);
  else at::parallel_for(0, work_.units, grain, [&](int64_t begin, int64_t end) { function_(buffers, begin, end); });
  stack.clear();
  for (at::Tensor& r : results) stack.emplace_back(std::move(r));
}

}  // namespace cutaway::native
