// What a torch.fx node carries besides its edges, as our words: literals, types of results, the user's line.
// Shared by the import and the export of fx graphs.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::fx {

/// The Python types and functions that the walk compares with, looked up once an import.
struct FxWords {
  nanobind::object node, op_overload, op_overload_packet, higher_order, graph_module, nn_module, parameter, getitem, sym_int, sym_float, sym_bool,
      dtype, device, layout, memory_format, generator;
  std::string torch_folder;   ///< frames of files below it are not the user's
  FxWords();
};

/// How a tuple inside an argument is written: an operator's schema knows lists only, a captured call keeps what Python had.
enum class Tuples { keep, as_lists };
/// A Python argument as ours; `node` answers for torch.fx nodes inside. An Error for what has no literal (a tensor, an
/// object of another library): it names the Python type, and its place is left for the caller.
base::Result<ir::Argument> to_argument(const FxWords&, nanobind::handle, Tuples, const std::function<base::Result<ir::Argument>(nanobind::handle)>& node);
/// The other way: literals only; a ValueRef is answered by `value`.
/// `wordless` is asked for numbers whose repr() is no expression, as fx writes them into its code; empty: they come as they are.
nanobind::object from_argument(const ir::Argument&, const std::function<nanobind::object(ir::ValueId)>& value, const std::function<nanobind::object(const ir::Dim&)>& symbol = {},
                               const std::function<nanobind::object(std::complex<double>)>& wordless = {});

/// A sympy expression as ours, for whoever reads one. `other` answers for symbols and for what our expressions cannot say (a power, a rounding); where it
/// has no answer, there is none for the whole.
std::optional<ir::Dim> read_sympy(nanobind::handle expr, const std::function<std::optional<ir::Dim>(nanobind::handle)>& other);

/// sympy expressions as dimensions. What our expressions cannot say (a power, a rounding) becomes a symbol of its own, the same
/// one for the same expression, so that equal sizes still read as equal.
class Dims {
 public:
  ir::Dim from_sympy(nanobind::handle expr);
  ir::Dim from_sym_int(nanobind::handle sym_int);

 private:
  std::unordered_map<std::string, std::string> opaque_;
};

/// Type of a result as fx's meta["val"] shows it (a fake or a real tensor, a symbolic or a plain number, None).
base::Result<ir::Type> type_of_value(const FxWords&, Dims&, nanobind::handle);

/// Innermost frame of meta["stack_trace"] that is not torch's, and the module path of meta["nn_module_stack"].
ir::Location location_of(const FxWords&, nanobind::handle fx_node);

/// "model.py:12", or the node's name where no line is known: where an error is.
std::string place_of(const ir::Location&, nanobind::handle fx_node);

}  // namespace cutaway::fx
