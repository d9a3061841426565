// Functional wrappers over fake tensors: how torch's functionalization is switched on for a recording, and what can be asked of a
// wrapper afterwards. Also the operators whose writes functionalization does not see by their schemas. Internal to compiler/aot.
#pragma once
#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::aot {

/// While one lives, operators of this thread are functionalized, and views stay views (no view_copy). Nests.
class Functionalized {
 public:
  Functionalized();
  ~Functionalized();
  Functionalized(const Functionalized&) = delete;
  Functionalized& operator=(const Functionalized&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard key_;
  at::functionalization::impl::FunctionalizationReapplyViewsGuard views_;
};

at::Tensor wrap(const at::Tensor& inner);
/// Brings the wrapper up to date with what was written through its aliases, and gives the tensor inside. Others pass through.
at::Tensor inner_of(const at::Tensor& wrapper);
at::FunctionalTensorWrapper* wrapper_of(const at::Tensor&);   ///< null for another kind of tensor
/// The same for all wrappers that alias one another.
const c10::StorageImpl* storage_of(const at::Tensor& wrapper);

using ViewSteps = std::vector<std::shared_ptr<at::functionalization::ViewMeta>>;
/// The views that lead from `base` (a fake tensor) to a wrapper, as a graph of their own with one input and one output.
base::Result<ir::Graph> record_view(const at::Tensor& base, const ViewSteps&, std::string name);

}  // namespace cutaway::aot
