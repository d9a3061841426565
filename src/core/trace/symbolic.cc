#include "core/trace/symbolic.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::trace {
namespace {

bool same_constant(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.sizes() != b.sizes() || a.strides() != b.strides() || a.scalar_type() != b.scalar_type() || a.device() != b.device()) return false;
  if (a.has_storage() && b.has_storage() && a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl()) return a.storage_offset() == b.storage_offset();
  if (a.is_meta() || a.key_set().has(kBelowKey)) return false;
  const c10::impl::ExcludeDispatchKeyGuard quiet(c10::DispatchKeySet(kAboveKey).add(kBelowKey));
  return at::equal(a, b);
}

}  // namespace

std::vector<size_t> ConstantNumbers::of(const std::vector<at::Tensor>& constants) {
  std::vector<size_t> numbers;
  if (known_.size() < constants.size()) known_.resize(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    size_t n = 0;
    while (n < known_[i].size() && !same_constant(known_[i][n], constants[i])) ++n;
    if (n == known_[i].size()) known_[i].push_back(constants[i]);
    numbers.push_back(n);
  }
  return numbers;
}

base::Result<symbolic::SymbolicGraph> record_symbolic(const symbolic::RecordAt& record, std::vector<symbolic::Symbol> symbols) {
  bool is_first = true;
  const auto counted = [&](const std::vector<int64_t>& values) -> base::Result<symbolic::Recording> {
    const bool passes_errors = std::exchange(is_first, false);
    const uint64_t before = operators_met();
    try {
      auto recording = record(values);
      if (recording.ok()) recording->work = operators_met() - before;
      return recording;
    } catch (const c10::Error& e) {   // a shape that does not fit
      if (passes_errors) throw;
      return base::Error{.what = e.what_without_backtrace()};
    }
  };
  return symbolic::search(counted, std::move(symbols));
}

}  // namespace cutaway::trace
