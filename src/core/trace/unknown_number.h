// A number that only data knows, as torch's bindings carry it from a call to the next (SymInt, SymFloat, SymBool). It is a value of a recording's graph, and
// every question about it is refused as one about a tensor's value. Main type: UnknownNumber.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/SymNodeImpl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cutaway::trace {

inline constexpr size_t kWorlds = 8;   ///< how many numbers each is tried at, see fakes/unknowns.h

class UnknownNumber final : public c10::SymNodeImpl {
 public:
  enum class Kind : uint8_t { integer, floating, boolean };
  using Worlds = std::array<c10::IValue, kWorlds>;   ///< none: where the program would have raised before
  UnknownNumber(Kind kind, Worlds in);
  ~UnknownNumber() override;

  const Kind kind;
  const Worlds in;
  /// Of a size: whose, and which dimension. -1: the number of elements. The tensor's fake may be gone.
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor{c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
  int64_t dim = 0;
  bool is_size = false;
  std::optional<bool> certain;   ///< of a question whose answer does not depend on the number: is it equal to itself

  /// As an operator's argument. Null for other values.
  static UnknownNumber* of(const c10::IValue&);
  static c10::IValue as_value(const c10::intrusive_ptr<UnknownNumber>&);

  bool is_int() override { return kind == Kind::integer; }
  bool is_float() override { return kind == Kind::floating; }
  bool is_bool() override { return kind == Kind::boolean; }
  bool has_hint() override { return false; }
  std::string _graph_repr() override;
  std::string str() override { return "a number read from a tensor"; }
  c10::SymNode clone() override;
  c10::SymNode wrap_int(int64_t n) override;
  c10::SymNode wrap_float(double x) override;
  c10::SymNode wrap_bool(bool b) override;
  int64_t guard_int(const char*, int64_t) override { refuse(); }
  bool guard_bool(const char*, int64_t) override;
  double guard_float(const char*, int64_t) override { refuse(); }
  int64_t int_() override { refuse(); }
  bool bool_() override { refuse(); }
  // Whether something is known for certain may be asked: it is not. What must hold is asked again by the operator itself, when the graph runs.
  bool guard_size_oblivious(const char*, int64_t) override;   ///< whether a size that is neither 0 nor 1 would be; torch asks so where both ways do the same
  bool statically_known_true(const char*, int64_t) override { return false; }
  bool guard_or_false(const char*, int64_t) override { return false; }
  bool guard_or_true(const char*, int64_t) override { return true; }
  bool expect_true(const char*, int64_t) override { return true; }
#define CUTAWAY_QUESTION(NAME, SYMBOL) \
  c10::SymNode NAME(const c10::SymNode& other) override { return question(other, [](double a, double b) { return a SYMBOL b; }); }
  CUTAWAY_QUESTION(eq, ==) CUTAWAY_QUESTION(ne, !=) CUTAWAY_QUESTION(gt, >) CUTAWAY_QUESTION(lt, <) CUTAWAY_QUESTION(le, <=) CUTAWAY_QUESTION(ge, >=)
  CUTAWAY_QUESTION(sym_or, ||) CUTAWAY_QUESTION(sym_and, &&)
#undef CUTAWAY_QUESTION
  c10::SymNode sym_not() override { return question(c10::intrusive_ptr<c10::SymNodeImpl>::reclaim_copy(this), [](double a, double) { return !a; }); }
#define CUTAWAY_REFUSED(NAME) \
  c10::SymNode NAME(const c10::SymNode&) override { refuse(); }
  CUTAWAY_REFUSED(add) CUTAWAY_REFUSED(sub) CUTAWAY_REFUSED(mul) CUTAWAY_REFUSED(truediv) CUTAWAY_REFUSED(pow) CUTAWAY_REFUSED(floordiv) CUTAWAY_REFUSED(mod)
  CUTAWAY_REFUSED(sym_min) CUTAWAY_REFUSED(sym_max)
#undef CUTAWAY_REFUSED
  c10::SymNode ceil() override { refuse(); }
  c10::SymNode floor() override { refuse(); }
  c10::SymNode neg() override { refuse(); }
  c10::SymNode sym_float() override { refuse(); }
  c10::SymNode sym_ite(const c10::SymNode&, const c10::SymNode&) override { refuse(); }

 private:
  [[noreturn]] static void refuse();
  c10::SymNode question(const c10::SymNode& other, bool (*answer)(double, double)) const;   ///< no value of the graph
};

}  // namespace cutaway::trace
