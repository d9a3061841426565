// Literals and names as Python writes them. Not for use outside core/script.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/ir/argument.h"
#include "core/ir/graph.h"

namespace cutaway::script {

bool is_python_keyword(std::string_view);
bool is_python_identifier(std::string_view);
/// "torch.float32".
std::string python_dtype(ir::DType);
/// In double quotes; whatever the text holds, it stays within the quotes and on the line.
std::string python_string(std::string_view);
/// Reads back as the same bits; infinities and NaN as float("…").
std::string python_float(double);
/// What follows `with`: "torch.set_grad_enabled(False), torch.autocast(…)". Not for a default state.
std::string python_state(const ir::RegionState&);
/// `value` spells a value of the graph, `symbol` a symbolic integer.
base::Result<std::string> python_argument(const ir::Argument&, const std::function<std::string(ir::ValueId)>& value,
                                          const std::function<base::Result<std::string>(const ir::Dim&)>& symbol);

}  // namespace cutaway::script
