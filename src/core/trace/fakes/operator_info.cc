#include "core/trace/fakes/operator_info.h"

#include <ATen/core/enum_tag.h>

#include <memory>
#include <unordered_map>

#include "core/ir/graph.h"
#include "core/trace/shape_rules/meta_table.h"
#include "core/trace/shape_rules/shape_rules.h"
#include "core/trace/value_checks.h"

namespace cutaway::trace {
namespace {

bool holds_tensors(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return true;
    case c10::TypeKind::OptionalType: return holds_tensors(type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType: return holds_tensors(type->expectRef<c10::ListType>().getElementType());
    default: return false;
  }
}

std::unique_ptr<OperatorInfo> inspect(const c10::OperatorHandle& op) {
  auto info = std::make_unique<OperatorInfo>(op.operator_name());
  const auto& schema = op.schema();
  info->full_name = c10::toString(op.operator_name());
  info->target = ir::join_op_name(info->name.name, info->name.overload_name);
  const auto colons = info->name.name.find("::");
  info->value_name = info->name.name.substr(colons == std::string::npos ? 0 : colons + 2);
  info->argument_count = schema.arguments().size();
  info->return_count = schema.returns().size();
  info->returns_fresh = true;
  for (const auto& a : schema.arguments())
    if (a.alias_info() && a.alias_info()->isWrite()) info->is_mutable = true;
  for (const auto& r : schema.returns()) {
    (holds_tensors(r.type()) ? info->returns_tensors : info->returns_values) = true;
    if (r.alias_info()) info->returns_fresh = false;
  }
  info->is_data_dependent = op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
  if (info->full_name == "aten::is_nonzero" || info->full_name == "aten::_unsafe_index.Tensor" || info->full_name == "aten::_pack_padded_sequence") info->is_data_dependent = true;   // not tagged
  info->is_nested = info->value_name.find("nested") != std::string::npos;
  info->is_assertion = info->name.name == "aten::_assert_async";
  info->checking = checking_operator(info->full_name);
  info->reads_memory = info->full_name == "aten::max_pool1d";
  info->is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  using K = c10::DispatchKey;
  info->is_composite = op.hasKernelForDispatchKey(K::CompositeImplicitAutograd) && !op.hasKernelForDispatchKey(K::CPU) &&
                       !op.hasKernelForDispatchKey(K::CUDA) && !op.hasKernelForDispatchKey(K::Meta);
  info->own_rule = find_shape_rule(info->full_name);
  info->cpp_meta = find_meta_kernel(info->full_name);
  info->view_rule = find_view_rule(info->full_name);
  for (const auto& a : schema.arguments()) info->names_device |= a.name() == "device";
  const auto& n = info->value_name;
  info->may_mix_devices = n.find("copy") != std::string::npos || n.find("index") != std::string::npos || n == "set_" || n == "to" || n.starts_with("_foreach") ||
                          n.starts_with("lift") || n.find("pack_padded") != std::string::npos;
  // Custom operators may return an argument in spite of their schema: only torch's own are trusted to give fresh tensors.
  info->is_memoizable = info->returns_fresh && !info->is_mutable && info->returns_tensors && !info->returns_values && !info->is_composite &&
                        info->name.name.starts_with("aten::") && !info->is_data_dependent;
  // contiguous-like operators return their argument itself when nothing is to do, though the schema says otherwise.
  const bool is_lift = info->full_name == "aten::lift" || info->full_name == "aten::lift_fresh";
  if (is_lift) info->is_memoizable = false;
  info->gives_fresh_tensors = info->returns_fresh && !info->is_mutable && info->returns_tensors && !info->returns_values && info->name.name.starts_with("aten::") && !is_lift &&
                              !info->is_data_dependent && !info->is_nested && !info->reads_memory && info->checking.empty();
  info->errors = kernel_errors(op, *info);
  return info;
}

}  // namespace

const OperatorInfo& operator_info(const c10::OperatorHandle& op) {
  // By the schema's address. A library that is unloaded and loaded again may give the address to another operator: hence the name.
  static thread_local std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OperatorInfo>> known;
  auto& slot = known[&op.schema()];
  if (!slot || !(slot->name == op.operator_name()) || slot->argument_count != op.schema().arguments().size()) slot = inspect(op);
  return *slot;
}

}  // namespace cutaway::trace
