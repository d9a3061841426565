// What is known of an exception that flies: type, message, stage. Python's are described by the bindings, which register themselves here.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cutaway::repro {

struct ExceptionFacts {
  std::string type;         ///< as Python shows it: "RuntimeError", "InductorError"
  std::string message;
  std::string trace;        ///< for people; may be empty
  std::string user_frame;   ///< "model.py:23 forward" of the innermost frame that is the user's; may be empty
  bool is_memory = false;   ///< an allocation failed
  std::vector<std::string> suspects;   ///< nodes of the graph that it points to (those of the kernel that failed), as fx names them
  int64_t new_kernels = 0;             ///< built before it was raised
  std::string signal = {};  ///< of another program that died by one
};
/// Never throws.
ExceptionFacts describe_exception(std::exception_ptr);
/// Tried first; returns nothing for an exception that is not its kind.
void set_exception_describer(std::function<std::optional<ExceptionFacts>(std::exception_ptr)>);

}  // namespace cutaway::repro
