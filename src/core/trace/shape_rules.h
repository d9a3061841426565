// Shape rules of ours, for operators that have no C++ meta kernel in torch and that real models use. A rule takes meta tensors
// and returns meta tensors with the sizes, strides and dtype that eager gives on the CPU; it raises where eager raises on shapes.
// Adding one: a function with the operator's own C++ type, and a row in the table of its file. Checked by tests/operators/test_shape_rules.py.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "core/trace/meta_table.h"

namespace cutaway::trace {

/// The rule of an operator by its full name; null when it has none.
const c10::KernelFunction* find_shape_rule(const std::string& full_name);
/// Names of all operators with a rule of ours, views included, sorted.
std::vector<std::string> shape_rule_names();

/// Whether the shapes that linalg_lstsq gives follow from those of its arguments, for this driver: residuals of gelss and gelsd exist
/// only where the ranks, which are data, are full. On the CPU; another device has other drivers and layouts.
bool are_lstsq_shapes_known(const at::Tensor& a, const std::optional<std::string_view>& driver);

namespace detail {
void add_pointwise_rules(KernelTable&);
void add_reduction_rules(KernelTable&);
void add_indexing_rules(KernelTable&);
void add_factory_rules(KernelTable&);
void add_normalization_rules(KernelTable&);
void add_convolution_rules(KernelTable&);
void add_attention_rules(KernelTable&);
void add_linear_algebra_rules(KernelTable&);
}  // namespace detail

// One row: the function must have exactly the operator's C++ type.
#define CUTAWAY_SHAPE_RULE(table, op, function)                              \
  (table).emplace(row_name(at::_ops::op::name, at::_ops::op::overload_name), \
                  c10::KernelFunction::makeFromUnboxedRuntimeFunction(static_cast<at::_ops::op::schema*>(function)))

}  // namespace cutaway::trace
