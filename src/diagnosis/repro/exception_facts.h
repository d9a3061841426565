// What is known of an exception that flies: type, message, stage. Python's are described by the bindings, which register themselves here.
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <string>

namespace cutaway::repro {

struct ExceptionFacts {
  std::string type;         ///< as Python shows it: "RuntimeError", "InductorError"
  std::string message;
  std::string trace;        ///< for people; may be empty
  std::string user_frame;   ///< "model.py:23 forward" of the innermost frame that is the user's; may be empty
  bool is_memory = false;   ///< an allocation failed
};
/// Never throws.
ExceptionFacts describe_exception(std::exception_ptr);
/// Tried first; returns nothing for an exception that is not its kind.
void set_exception_describer(std::function<std::optional<ExceptionFacts>(std::exception_ptr)>);

}  // namespace cutaway::repro
