// What the tracer needs to know of an operator, found once: names, how it treats its arguments, which shape rule it has.
// Internal to core/trace.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/argument.h"
#include "core/trace/fakes/view_rules.h"

namespace cutaway::trace {

/// What its kernels may raise although shapes fit (kernel_errors.h).
enum class KernelErrors : uint8_t { none, of_dtypes, of_values };

struct OperatorInfo {
  explicit OperatorInfo(c10::OperatorName n) : name(std::move(n)) {}
  c10::OperatorName name;
  std::string full_name;      ///< "aten::add.Tensor"
  std::string target;         ///< "aten.add.Tensor", as in graphs
  std::string value_name;     ///< "add", for the names of results
  size_t argument_count = 0, return_count = 0;
  bool is_mutable = false;         ///< writes to an argument
  bool returns_tensors = false;    ///< at least one result is a tensor or a list of tensors
  bool returns_values = false;     ///< at least one result is something else (int, bool, Scalar)
  bool returns_fresh = false;      ///< no result aliases an argument, by the schema
  bool is_data_dependent = false;  ///< its result's value or shape depends on data
  bool is_random = false;
  bool is_nested = false;          ///< makes or takes nested tensors
  bool is_composite = false;       ///< only ever runs as other operators (CompositeImplicitAutograd)
  bool is_memoizable = false;
  bool gives_fresh_tensors = false;   ///< a call of torch's own that does nothing but make its results (call_memo.h)
  std::string_view checking;       ///< its name when it asks data only to raise an error (value_checks.h)
  bool is_assertion = false;       ///< _assert_async: nothing but an error can come of it
  bool reads_memory = false;       ///< above every key: see run_above()
  KernelErrors errors = KernelErrors::of_values;
  const c10::KernelFunction* own_rule = nullptr;
  const c10::KernelFunction* cpp_meta = nullptr;
  ViewRule view_rule = nullptr;
  bool names_device = false;       ///< has an argument `device`
  bool may_mix_devices = false;    ///< takes tensors of several devices: copies, indices on the CPU
  /// The default of each argument as a literal; filled by the recorder on first use.
  mutable std::vector<std::optional<ir::Argument>> defaults;
  mutable bool has_defaults = false;
};

/// Defined in kernel_errors.cc.
KernelErrors kernel_errors(const c10::OperatorHandle&, const OperatorInfo&);

/// Never null; lives as long as the thread.
const OperatorInfo& operator_info(const c10::OperatorHandle&);

}  // namespace cutaway::trace
