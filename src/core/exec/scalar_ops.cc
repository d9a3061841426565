#include "core/exec/scalar_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cutaway::exec {
namespace {

using c10::IValue;

bool is_integer(const IValue& v) { return v.isInt() || v.isBool(); }

int64_t integer(const IValue& v) {
  if (v.isInt()) return v.toInt();
  if (v.isBool()) return v.toBool() ? 1 : 0;
  TORCH_CHECK_TYPE(false, "a whole number is needed here, not a value of kind ", v.tagKind());
}

double floating(const IValue& v) {
  if (v.isDouble()) return v.toDouble();
  return static_cast<double>(integer(v));
}

bool truth(const IValue& v) {
  if (v.isBool()) return v.toBool();
  return v.isDouble() ? v.toDouble() != 0 : integer(v) != 0;
}

[[noreturn]] void overflow(const char* op) { TORCH_CHECK_VALUE(false, "sym.", op, ": the result does not fit into 64 bits"); }

#define CUTAWAY_ARITHMETIC(NAME, BUILTIN, SYMBOL)                                            \
  IValue NAME(const IValue* a, size_t) {                                                     \
    if (!is_integer(a[0]) || !is_integer(a[1])) return floating(a[0]) SYMBOL floating(a[1]); \
    int64_t r;                                                                               \
    if (BUILTIN(integer(a[0]), integer(a[1]), &r)) overflow(#NAME);                          \
    return r;                                                                                \
  }
CUTAWAY_ARITHMETIC(add, __builtin_add_overflow, +)
CUTAWAY_ARITHMETIC(sub, __builtin_sub_overflow, -)
CUTAWAY_ARITHMETIC(mul, __builtin_mul_overflow, *)
#undef CUTAWAY_ARITHMETIC

/// Quotient rounded down and the remainder that has the divisor's sign.
std::pair<int64_t, int64_t> divide(const char* op, int64_t a, int64_t b) {
  TORCH_CHECK_VALUE(b != 0, "sym.", op, ": division by zero");
  if (b == -1) {   // the one quotient that may not fit
    if (a == std::numeric_limits<int64_t>::min()) overflow(op);
    return {-a, 0};
  }
  int64_t q = a / b, r = a % b;
  if (r != 0 && (r < 0) != (b < 0)) { --q; r += b; }
  return {q, r};
}
std::pair<double, double> divide(const char* op, double a, double b) {
  TORCH_CHECK_VALUE(b != 0, "sym.", op, ": division by zero");
  double r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0) { if ((r < 0) != (b < 0)) { r += b; q -= 1; } }
  else r = std::copysign(0.0, b);
  if (q != 0) { const double low = std::floor(q); q = q - low > 0.5 ? low + 1 : low; }
  else q = std::copysign(0.0, a / b);
  return {q, r};
}
IValue floordiv(const IValue* a, size_t) {
  if (is_integer(a[0]) && is_integer(a[1])) return divide("floordiv", integer(a[0]), integer(a[1])).first;
  return divide("floordiv", floating(a[0]), floating(a[1])).first;
}
IValue mod(const IValue* a, size_t) {
  if (is_integer(a[0]) && is_integer(a[1])) return divide("mod", integer(a[0]), integer(a[1])).second;
  return divide("mod", floating(a[0]), floating(a[1])).second;
}
IValue truediv(const IValue* a, size_t) {
  const double b = floating(a[1]);
  TORCH_CHECK_VALUE(b != 0, "sym.truediv: division by zero");
  constexpr int64_t kExact = int64_t{1} << 53;
  const auto is_exact = [](const IValue& v) { return is_integer(v) && integer(v) >= -kExact && integer(v) <= kExact; };
  if (is_exact(a[0]) && is_exact(a[1])) return floating(a[0]) / b;   // rounded once
  // Two integers beyond 2^53 divide exactly rounded in Python; long double has the 64 bits that this needs.
  if (is_integer(a[0]) && is_integer(a[1])) return static_cast<double>(static_cast<long double>(integer(a[0])) / static_cast<long double>(integer(a[1])));
  return floating(a[0]) / b;
}
IValue pow(const IValue* a, size_t) {
  if (is_integer(a[0]) && is_integer(a[1]) && integer(a[1]) >= 0) {
    int64_t base = integer(a[0]), exponent = integer(a[1]), r = 1;
    while (exponent > 0) {
      if ((exponent & 1) && __builtin_mul_overflow(r, base, &r)) overflow("pow");
      exponent >>= 1;
      if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow("pow");
    }
    return r;
  }
  const double base = floating(a[0]), exponent = floating(a[1]);
  TORCH_CHECK_VALUE(base != 0 || exponent >= 0, "sym.pow: zero to a negative power");
  TORCH_CHECK_VALUE(base >= 0 || exponent == std::floor(exponent), "sym.pow: a negative number to a fractional power is complex");
  return std::pow(base, exponent);
}
IValue neg(const IValue* a, size_t) {
  if (!is_integer(a[0])) return -floating(a[0]);
  if (integer(a[0]) == std::numeric_limits<int64_t>::min()) overflow("neg");
  return -integer(a[0]);
}
IValue pos(const IValue* a, size_t) { return is_integer(a[0]) ? IValue(integer(a[0])) : a[0]; }
IValue abs(const IValue* a, size_t n) {
  if (!is_integer(a[0])) return std::fabs(floating(a[0]));
  return integer(a[0]) < 0 ? neg(a, n) : IValue(integer(a[0]));
}

/// Exact between an integer and a float: long double holds every value of both.
long double exact(const IValue& v) { return v.isDouble() ? static_cast<long double>(v.toDouble()) : static_cast<long double>(integer(v)); }
static_assert(std::numeric_limits<long double>::digits >= 64, "comparisons of 64-bit integers with doubles need a wide long double");

IValue eq(const IValue* a, size_t) { return exact(a[0]) == exact(a[1]); }
IValue ne(const IValue* a, size_t) { return exact(a[0]) != exact(a[1]); }
IValue lt(const IValue* a, size_t) { return exact(a[0]) < exact(a[1]); }
IValue le(const IValue* a, size_t) { return exact(a[0]) <= exact(a[1]); }
IValue gt(const IValue* a, size_t) { return exact(a[0]) > exact(a[1]); }
IValue ge(const IValue* a, size_t) { return exact(a[0]) >= exact(a[1]); }

/// sym_min and sym_max give a float when either side is one, as torch's do.
IValue promoted(const IValue& chosen, const IValue& other) { return chosen.isDouble() || other.isDouble() ? IValue(floating(chosen)) : chosen; }
IValue min(const IValue* a, size_t) { return exact(a[1]) < exact(a[0]) ? promoted(a[1], a[0]) : promoted(a[0], a[1]); }
IValue max(const IValue* a, size_t) { return exact(a[1]) > exact(a[0]) ? promoted(a[1], a[0]) : promoted(a[0], a[1]); }

IValue bit_and(const IValue* a, size_t) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() && a[1].toBool();
  return integer(a[0]) & integer(a[1]);
}
IValue bit_or(const IValue* a, size_t) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() || a[1].toBool();
  return integer(a[0]) | integer(a[1]);
}
IValue bit_xor(const IValue* a, size_t) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() != a[1].toBool();
  return integer(a[0]) ^ integer(a[1]);
}
IValue lshift(const IValue* a, size_t) {
  const int64_t x = integer(a[0]), n = integer(a[1]);
  TORCH_CHECK_VALUE(n >= 0, "sym.lshift: negative shift");
  if (x == 0) return x;
  const int64_t r = n < 63 ? static_cast<int64_t>(static_cast<uint64_t>(x) << n) : 0;
  if (n >= 63 || (r >> n) != x) overflow("lshift");
  return r;
}
IValue rshift(const IValue* a, size_t) {
  const int64_t n = integer(a[1]);
  TORCH_CHECK_VALUE(n >= 0, "sym.rshift: negative shift");
  return integer(a[0]) >> std::min<int64_t>(n, 63);
}
IValue logical_not(const IValue* a, size_t) { return !truth(a[0]); }
IValue to_bool(const IValue* a, size_t) { return truth(a[0]); }
IValue to_float(const IValue* a, size_t) { return floating(a[0]); }
IValue choose(const IValue* a, size_t) { return truth(a[0]) ? a[1] : a[2]; }

IValue whole(const char* op, double x) {
  TORCH_CHECK_VALUE(std::isfinite(x), "sym.", op, ": ", x, " is not a number that an integer can hold");
  if (x < -0x1p63 || x >= 0x1p63) overflow(op);
  return static_cast<int64_t>(x);
}
#define CUTAWAY_ROUNDING(NAME, FUNCTION) \
  IValue NAME(const IValue* a, size_t) { return is_integer(a[0]) ? IValue(integer(a[0])) : whole(#NAME, FUNCTION(floating(a[0]))); }
CUTAWAY_ROUNDING(trunc, std::trunc)
CUTAWAY_ROUNDING(floor, std::floor)
CUTAWAY_ROUNDING(ceil, std::ceil)
CUTAWAY_ROUNDING(round, std::nearbyint)   // the default rounding mode is Python's: half to even
#undef CUTAWAY_ROUNDING

#define CUTAWAY_FLOAT_FUNCTION(NAME, FUNCTION, VALID)                                                     \
  IValue NAME(const IValue* a, size_t) {                                                                  \
    const double x = floating(a[0]);                                                                      \
    TORCH_CHECK_VALUE(VALID, "sym." #NAME ": ", x, " is outside its domain");                             \
    return FUNCTION(x);                                                                                   \
  }
CUTAWAY_FLOAT_FUNCTION(sqrt, std::sqrt, !(x < 0))
CUTAWAY_FLOAT_FUNCTION(log2, std::log2, !(x <= 0))
CUTAWAY_FLOAT_FUNCTION(log, std::log, !(x <= 0))
CUTAWAY_FLOAT_FUNCTION(exp, std::exp, true)
CUTAWAY_FLOAT_FUNCTION(sin, std::sin, !std::isinf(x))
CUTAWAY_FLOAT_FUNCTION(cos, std::cos, !std::isinf(x))
CUTAWAY_FLOAT_FUNCTION(tanh, std::tanh, true)
#undef CUTAWAY_FLOAT_FUNCTION

IValue sum(const IValue* a, size_t) {
  IValue total = int64_t{0};
  for (const IValue& item : a[0].toListRef()) {
    const IValue pair[2] = {total, item};
    total = add(pair, 2);
  }
  return total;
}

constexpr ScalarOp kOps[] = {
    {"add", 2, add}, {"sub", 2, sub}, {"mul", 2, mul}, {"truediv", 2, truediv}, {"floordiv", 2, floordiv}, {"mod", 2, mod},
    {"pow", 2, pow}, {"neg", 1, neg}, {"pos", 1, pos}, {"abs", 1, abs}, {"min", 2, min}, {"max", 2, max},
    {"eq", 2, eq}, {"ne", 2, ne}, {"lt", 2, lt}, {"le", 2, le}, {"gt", 2, gt}, {"ge", 2, ge},
    {"and", 2, bit_and}, {"or", 2, bit_or}, {"xor", 2, bit_xor}, {"lshift", 2, lshift}, {"rshift", 2, rshift},
    {"not", 1, logical_not}, {"bool", 1, to_bool}, {"int", 1, trunc}, {"float", 1, to_float}, {"trunc", 1, trunc},
    {"floor", 1, floor}, {"ceil", 1, ceil}, {"round", 1, round}, {"sqrt", 1, sqrt}, {"log2", 1, log2}, {"log", 1, log}, {"exp", 1, exp},
    {"sin", 1, sin}, {"cos", 1, cos}, {"tanh", 1, tanh}, {"ite", 3, choose},
    {"sum", ScalarOp::kAnyArity, sum},
};

}  // namespace

const ScalarOp* find_scalar_op(std::string_view target) {
  constexpr std::string_view prefix = "sym.";
  if (!target.starts_with(prefix)) return nullptr;
  target.remove_prefix(prefix.size());
  const auto* found = std::find_if(std::begin(kOps), std::end(kOps), [&](const ScalarOp& op) { return op.name == target; });
  return found == std::end(kOps) ? nullptr : found;
}

ir::Schema scalar_op_schema(const ScalarOp& op) {
  ir::Schema schema;
  if (op.arity == ScalarOp::kAnyArity) schema.args.push_back({.name = "values", .type = "Scalar[]"});
  for (int i = 0; i < op.arity; ++i) schema.args.push_back({.name = std::string(1, static_cast<char>('a' + i)), .type = "Scalar"});
  schema.returns = {"Scalar"};
  return schema;
}

}  // namespace cutaway::exec
