// The one way a function of ours says that something expected went wrong: it returns a Result.
// Main types: Error (place, what, because, hint) and Result<T>. Exceptions are for the Python edge and for libtorch,
// whose exceptions are turned into Results in core/tensor and core/exec.
#pragma once
#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cutaway::base {

/// What went wrong, in the four parts that a reader needs. Only `what` is always there.
struct Error {
  std::string what{};     ///< lower case, no full stop: "blob 3f9a…c1 is missing"
  std::string place{};    ///< "file:line:column", a path, or empty
  std::string because{};  ///< the cause, when it is not in `what`
  std::string hint{};     ///< the next step: what to try
  std::string excerpt{};  ///< source line and caret under it, ready to print; may be empty

  /// `place: what`, then the excerpt, then `   because: …` and `   try: …`; no trailing newline.
  std::string text() const;
  /// The same error, seen from an outer place: fills `place` only where it is empty.
  Error at(std::string_view outer_place) &&;
};

/// A value or an Error. `[[nodiscard]]`: an ignored failure does not compile silently.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { assert(ok()); return std::get<0>(state_); }
  const T& value() const& { assert(ok()); return std::get<0>(state_); }
  T value() && { assert(ok()); return std::get<0>(std::move(state_)); }   // by value: `for (auto& x : *list())` must not dangle
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { assert(!ok()); return std::get<1>(state_); }
  const Error& error() const& { assert(!ok()); return std::get<1>(state_); }
  Error&& error() && { assert(!ok()); return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error, for functions that return nothing else.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { assert(!ok()); return *error_; }
  Error&& error() && { assert(!ok()); return *std::move(error_); }

 private:
  std::optional<Error> error_;
};
using Status = Result<void>;

// Returns the error of `expression` to the caller, else goes on; the second form also binds the value.
#define CUTAWAY_CONCAT_INNER(a, b) a##b
#define CUTAWAY_CONCAT(a, b) CUTAWAY_CONCAT_INNER(a, b)
#define CUTAWAY_TRY(expression)                                            \
  do {                                                                     \
    if (auto cutaway_status = (expression); !cutaway_status.ok())          \
      return std::move(cutaway_status).error();                            \
  } while (false)
#define CUTAWAY_TRY_ASSIGN(declaration, expression)                        \
  auto CUTAWAY_CONCAT(cutaway_result_, __LINE__) = (expression);           \
  if (!CUTAWAY_CONCAT(cutaway_result_, __LINE__).ok())                     \
    return std::move(CUTAWAY_CONCAT(cutaway_result_, __LINE__)).error();   \
  declaration = std::move(CUTAWAY_CONCAT(cutaway_result_, __LINE__)).value()

}  // namespace cutaway::base
