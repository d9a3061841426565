// A quarter of the table of C++ meta kernels; see meta_table.h.
#include <ATen/core/Tensor.h>

#include "core/trace/shape_rules/meta_table.h"
#define CUTAWAY_META_TABLE_HEADERS
#include "core/trace/shape_rules/meta_table_generated_0.inc"
#undef CUTAWAY_META_TABLE_HEADERS

namespace cutaway::trace::detail {

void add_meta_rows_0(KernelTable& table) {
// A run-time function pointer: one wrapper is compiled per signature instead of one per operator.
#define CUTAWAY_META_ROW(op, function)                                                     \
  table.emplace(row_name(at::_ops::op::name, at::_ops::op::overload_name),                 \
                c10::KernelFunction::makeFromUnboxedRuntimeFunction(static_cast<at::_ops::op::schema*>(&at::meta::function)));
#include "core/trace/shape_rules/meta_table_generated_0.inc"
}

}  // namespace cutaway::trace::detail
