// Result -> Python: an Error becomes cutaway.Error, whose text is the message a user reads.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>

#include "core/base/result.h"

namespace cutaway::casters {
/// Thrown for an Error; registered as cutaway.Error.
struct ErrorException : std::exception {
  base::Error error;
  std::string text;
  explicit ErrorException(base::Error e) : error(std::move(e)), text(error.text()) {}
  const char* what() const noexcept override { return text.c_str(); }
};
template <class T> T unwrap(base::Result<T> r) {
  if (!r.ok()) throw ErrorException(std::move(r).error());
  return std::move(r).value();
}
inline void unwrap(base::Status s) {
  if (!s.ok()) throw ErrorException(std::move(s).error());
}
/// Runs `f` when Python ends: for what C++ holds of Python, which must go before the interpreter does.
inline void at_exit(std::function<void()> f) { nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(std::move(f))); }
}  // namespace cutaway::casters
