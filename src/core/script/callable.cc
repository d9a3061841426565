#include "core/script/callable.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cutaway::script {

namespace {
bool is_identifier(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}
constexpr std::array kModules = {"torch", "torch.nn.functional", "torch.special", "torch.fft", "torch.linalg", "torch._C._nn",
                                 "torch._C._special", "torch._C._fft", "torch._C._linalg", "operator"};
// Of the module torch itself: what touches files, code or the process rather than tensors.
constexpr std::array kNotTensorFunctions = {"load", "save", "compile", "from_file", "import_ir_module", "import_ir_module_from_buffer", "parse_ir",
                                            "parse_schema", "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_num_threads",
                                            "set_num_interop_threads", "use_deterministic_algorithms", "typename", "vmap", "cond", "while_loop"};
constexpr std::array kOperatorFunctions = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "pos", "invert", "abs", "and_", "or_",
                                           "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem", "iadd", "isub", "imul",
                                           "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift", "imatmul"};
template <size_t N> bool contains(const std::array<const char*, N>& list, std::string_view s) {
  return std::find(list.begin(), list.end(), s) != list.end();
}
}  // namespace

std::optional<Callable> callable_from_torch(std::string_view qualified) {
  const size_t dot = qualified.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view module = qualified.substr(0, dot), name = qualified.substr(dot + 1);
  if (!is_identifier(name)) return std::nullopt;
  if (module == "Tensor") {
    static constexpr std::array kNotMethods = {"register_hook", "register_post_accumulate_grad_hook", "map_", "map2_", "apply_", "numpy", "tolist", "backward"};
    if (name.substr(0, 2) == "__" || contains(kNotMethods, name)) return std::nullopt;
    return Callable{Callable::Kind::method, {}, std::string(name)};
  }
  if (!contains(kModules, module)) return std::nullopt;
  if (module == "operator") {
    if (!contains(kOperatorFunctions, name)) return std::nullopt;
  } else if (name[0] == '_' || (module == "torch" && contains(kNotTensorFunctions, name))) {
    return std::nullopt;
  }
  return Callable{Callable::Kind::function, std::string(module), std::string(name)};
}

std::optional<Callable> symbolic_function(std::string_view target) {
  struct Row { std::string_view target, module, name; };
  static constexpr std::array kRows = {
      Row{"sym.add", "operator", "add"}, Row{"sym.sub", "operator", "sub"}, Row{"sym.mul", "operator", "mul"}, Row{"sym.floordiv", "operator", "floordiv"},
      Row{"sym.mod", "operator", "mod"}, Row{"sym.neg", "operator", "neg"}, Row{"sym.truediv", "operator", "truediv"}, Row{"sym.pow", "operator", "pow"},
      Row{"sym.eq", "operator", "eq"}, Row{"sym.ne", "operator", "ne"}, Row{"sym.lt", "operator", "lt"}, Row{"sym.le", "operator", "le"},
      Row{"sym.gt", "operator", "gt"}, Row{"sym.ge", "operator", "ge"}, Row{"sym.and", "operator", "and_"}, Row{"sym.or", "operator", "or_"},
      Row{"sym.not", "torch", "sym_not"}, Row{"sym.max", "torch", "sym_max"}, Row{"sym.min", "torch", "sym_min"}, Row{"sym.int", "torch", "sym_int"},
      Row{"sym.float", "torch", "sym_float"}, Row{"sym.ite", "torch", "sym_ite"}, Row{"sym.sum", "torch", "sym_sum"}, Row{"sym.sqrt", "math", "sqrt"},
      Row{"sym.trunc", "math", "trunc"}, Row{"sym.floor", "math", "floor"}, Row{"sym.ceil", "math", "ceil"}, Row{"sym.round", "builtins", "round"},
      Row{"sym.abs", "builtins", "abs"}, Row{"sym.exp", "math", "exp"}, Row{"sym.log", "math", "log"}, Row{"sym.sin", "math", "sin"},
      Row{"sym.cos", "math", "cos"}, Row{"sym.tanh", "math", "tanh"}};
  for (const Row& r : kRows)
    if (r.target == target) return Callable{Callable::Kind::function, std::string(r.module), std::string(r.name)};
  return std::nullopt;
}

}  // namespace cutaway::script
