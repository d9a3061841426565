// The exception that the captured code is raising. A method that returns null has raised: the exception is then in raised().
// An exception that torch raised on fake tensors is doubted: it counts only if eager raises it as well.
#pragma once
#include <Python.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Exceptions : protected Owners {
 public:
  explicit Exceptions(const Owners& owners) : Owners(owners) {}
  Exceptions(const Exceptions&) = delete;
  Exceptions& operator=(const Exceptions&) = delete;

  Value* raised() const { return raised_; }
  Value* take_raised();                                ///< it counts as handled; ends the graph where only eager knows whether it is raised
  /// What was raised just now comes from torch on fake tensors: it is the program's only if eager raises it, too (real_errors.cc). Null.
  std::nullptr_t doubt(std::string by);
  const std::string* doubted(Value* exception) const;  ///< the name of the operator that raised it; null: the program raises it
  std::string text_of_error(Value* exception);         ///< for sentences: "ValueError: words"
  Value* drop_raised() { return std::exchange(raised_, nullptr); }   ///< without a look at who raised it
  std::nullptr_t raise(Value* exception) { raised_ = exception; return nullptr; }
  std::nullptr_t raise(PyObject* type, std::string_view message);
  /// What was raised just now comes from a call with stand-ins, or from a rule of C that capture knows in part: it is doubted as well, unless there must be one graph.
  std::nullptr_t doubt_own();
  std::nullptr_t raise_unproven();                     ///< the Python error that is set now, which such a call raised
  std::nullptr_t raise_unproven(PyObject* type, std::string_view message);
  std::string doubt_text(const std::string& by, Value* exception);
  std::nullptr_t raise_python();                       ///< the Python error that is set now
  Value* make_exception(PyObject* type, std::vector<Value*> args);
  bool matches(Value* exception, Value* type_or_tuple);
  bool raised_is(PyObject* type);

 private:
  Value* raised_ = nullptr;
  std::unordered_map<Value*, std::string> doubted_;    ///< exceptions of torch on fakes, and the operators that raised them
};

}  // namespace cutaway::capture
