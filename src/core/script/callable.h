// Which captured calls may be written back as Python calls. A graph may come from anywhere, and torch's namespace also holds
// functions that read files, fetch code or start compilers: only names of plain tensor functions pass; every other call is
// written as the operators that it ran.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cutaway::script {

/// How Python calls it.
struct Callable {
  enum class Kind : uint8_t { function, method } kind = Kind::function;
  std::string module;   ///< function: "torch", "torch.nn.functional", "operator"
  std::string name;     ///< "linear"; a method's name
};
/// None for a name that is not one of torch's tensor functions or methods.
std::optional<Callable> callable_from_torch(std::string_view qualified_name);

/// The Python function behind an arithmetic operator on sizes: "sym.add" -> ("operator", "add"). None for another name.
std::optional<Callable> symbolic_function(std::string_view target);

}  // namespace cutaway::script
