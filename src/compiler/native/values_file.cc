#include "compiler/native/values_file.h"

#include <ATen/Functions.h>

#include <unordered_map>

#include "compiler/native/watch.h"

namespace cutaway::native {
namespace {

class Recorder final : public Watcher {
 public:
  Recorder(const codegen::Program& program, std::string& file) : file_(file), values_(codegen::values_of(program)) {
    int64_t bytes = 0;
    for (const codegen::ProgramValue& v : values_) bytes += v.bytes;
    if (bytes > kMostValueBytes) return;
    for (const codegen::ProgramValue& v : values_) by_id_.emplace(v.value, &v);
    file_ = codegen::values_header();
  }
  void add(ir::ValueId id, const c10::IValue& value) {
    const auto it = by_id_.find(id);
    if (it == by_id_.end() || !value.isTensor() || !value.toTensor().defined()) return;
    const codegen::ProgramValue& v = *it->second;
    const at::Tensor& t = value.toTensor();
    if (!t.device().is_cpu() || t.layout() != c10::kStrided || t.scalar_type() != static_cast<c10::ScalarType>(v.dtype) || t.sizes() != at::IntArrayRef(v.sizes)) return;
    file_ += codegen::value_header(v);
    const size_t start = file_.size();
    file_.resize(start + static_cast<size_t>(v.bytes));
    if (v.bytes == 0) return;
    // In the layout that kernels expect, whatever the operator gave. A value that is repeated in memory (a stride of 0) is written once.
    at::Tensor there = at::from_blob(file_.data() + start, v.sizes, v.strides, t.options().requires_grad(false));
    bool repeats = false;
    for (size_t d = 0; d < v.sizes.size(); ++d) repeats = repeats || (v.sizes[d] > 1 && v.strides[d] == 0);
    if (!repeats) {
      there.copy_(t.detach());
      return;
    }
    at::Tensor from = t.detach();
    for (size_t d = 0; d < v.sizes.size(); ++d)
      if (v.sizes[d] > 1 && v.strides[d] == 0) {
        from = from.narrow(static_cast<int64_t>(d), 0, 1);
        there = there.narrow(static_cast<int64_t>(d), 0, 1);
      }
    there.copy_(from);
  }
  void after(const ir::Node& n, const std::vector<c10::IValue>& results) override {
    for (size_t i = 0; i < results.size() && i < n.results.size(); ++i) add(n.results[i], results[i]);
  }

 private:
  std::string& file_;
  std::vector<codegen::ProgramValue> values_;
  std::unordered_map<ir::ValueId, const codegen::ProgramValue*> by_id_;
};

}  // namespace

std::vector<c10::IValue> run_recorded(const exec::Program& program, const codegen::Program& made, std::vector<c10::IValue>& inputs, std::string& file) {
  Recorder recorder(made, file);
  for (size_t i = 0; i < inputs.size() && i < made.graph.inputs.size(); ++i) recorder.add(made.graph.inputs[i].value, inputs[i]);
  return run_watched(program, inputs, recorder);
}

}  // namespace cutaway::native
