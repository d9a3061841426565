#include "compiler/frames/size_log.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <utility>

#include "compiler/frames/marks.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::frames {

SizeLog*& size_log() {
  thread_local SizeLog* log = nullptr;
  return log;
}

std::vector<int64_t> SizeLog::sizes_of(const guards::Source& of, PyObject* tensor, bool is_parameter) {
  const std::string source = of.identity();
  const at::Tensor& t = guards::unwrap_tensor(tensor);
  if (ask_marks) {
    const DimMarks marks = marked_dims(tensor);
    const auto add = [&](int dim) {
      if (dim < 0 || dim >= t.dim() || t.size(dim) < 2 || std::ranges::find(marks.static_, dim) != marks.static_.end()) return;
      if (std::ranges::none_of(sizes, [&](const Size& s) { return s.source == source && s.dim == dim; })) sizes.push_back({source, dim});
    };
    for (int d : marks.dynamic) add(d);
    for (int d : marks.maybe_dynamic) add(d);
    if (all_dynamic && !is_parameter) for (int d = 0; d < t.dim(); ++d) add(d);
    std::erase_if(sizes, [&](const Size& s) { return s.source == source && std::ranges::find(marks.static_, s.dim) != marks.static_.end(); });
  }
  std::vector<int64_t> out;
  for (Size& s : sizes) {
    if (s.source != source || s.dim < 0 || s.dim >= t.dim()) continue;
    s.real = t.size(s.dim);
    s.is_met = true;
    s.text = of.text();
    if (!s.said) continue;
    if (out.empty()) out = t.sizes().vec();
    out[s.dim] = *s.said;
  }
  return out;
}

namespace {
bool is_variable(const guards::Source& s) {
  return std::ranges::all_of(s.text(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}
}  // namespace

std::optional<int64_t> SizeLog::integer_of(const guards::Source& of, PyObject* integer) {
  const std::string source = of.identity();
  if (ask_marks && all_dynamic && is_variable(of) && std::ranges::none_of(sizes, [&](const Size& s) { return s.source == source; })) sizes.push_back({source, -1});
  for (Size& s : sizes) {
    if (s.dim >= 0 || s.source != source) continue;
    s.text = of.text();
    s.real = PyLong_AsLongLong(integer);
    s.is_met = !PyErr_Occurred();
    PyErr_Clear();
    if (s.said) return s.said;
  }
  return std::nullopt;
}

std::optional<double> SizeLog::float_of(const guards::Source& of, double now) {
  const std::string source = of.identity();
  const bool is_asked = (ask_marks && all_dynamic && is_variable(of)) || std::ranges::any_of(sizes, [&](const Size& s) { return s.dim < 0 && s.source == source; });
  for (Float& f : floats)
    if (f.source == source) { f.real = now; f.text = of.text(); return f.said; }
  if (is_asked) floats.push_back({source, now, std::nullopt, of.text()});
  return std::nullopt;
}

namespace {
/// An int, a bool or a float as a step takes it.
std::optional<symbolic::Number> step_number(PyObject* o) {
  if (PyFloat_CheckExact(o)) return symbolic::Number::of(PyFloat_AS_DOUBLE(o));
  if (!PyLong_CheckExact(o) && !PyBool_Check(o)) return std::nullopt;
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return std::nullopt;
  return symbolic::Number::of(static_cast<int64_t>(n));
}
}  // namespace

bool SizeLog::applied(symbolic::NumberStep::Kind f, PyObject* x, PyObject* result) {
  const auto number = step_number(x);
  if (!number || !result || !PyFloat_CheckExact(result)) return false;
  const auto again = symbolic::compute_number(f, *number, {});
  const double r = PyFloat_AS_DOUBLE(result);
  if (!again || !symbolic::Number::of(*again).same_as(symbolic::Number::of(r))) return false;
  steps.push_back({f, *number, {}, r, true, {}});
  return true;
}

bool SizeLog::chosen(bool is_max, PyObject* a, PyObject* b, PyObject* result) {
  const auto x = step_number(a), y = step_number(b), r = step_number(result);
  if (!x || !y || !r || PyBool_Check(a) || PyBool_Check(b) || x->is_float != y->is_float) return false;
  if (!x->is_float) {
    computations.push_back({is_max ? symbolic::Computation::Kind::max : symbolic::Computation::Kind::min, x->integer, y->integer, r->integer});
    return true;
  }
  const auto kind = is_max ? symbolic::NumberStep::Kind::max : symbolic::NumberStep::Kind::min;
  const auto again = symbolic::compute_number(kind, *x, *y);
  if (!again || !symbolic::Number::of(*again).same_as(*r)) return false;
  steps.push_back({kind, *x, *y, r->floating, true, {}});
  return true;
}

bool SizeLog::has_items_of(const guards::Source& of) const {
  const std::string begin = of.identity() + "[";
  return std::ranges::any_of(sizes, [&](const Size& s) { return s.dim < 0 && s.source.starts_with(begin); }) || std::ranges::any_of(floats, [&](const Float& f) { return f.source.starts_with(begin); });
}

void SizeLog::compared(PyObject* a, PyObject* b, int op, bool holds, const std::string& where) {
  if (PyTuple_Check(a) && PyTuple_Check(b)) {
    if (op != Py_EQ && op != Py_NE) { used(a); used(b); return; }
    uses.push_back(Py_SIZE(a) - Py_SIZE(b));
    for (Py_ssize_t i = 0; i < std::min(Py_SIZE(a), Py_SIZE(b)); ++i) {
      PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
      const int same = PyObject_RichCompareBool(x, y, Py_EQ);
      if (same < 0) PyErr_Clear();
      compared(x, y, Py_EQ, same > 0, where);
    }
    return;
  }
  if (PyFloat_CheckExact(a) || PyFloat_CheckExact(b)) {
    const auto x = step_number(a), y = step_number(b);
    if (!x || !y) {   // no float is equal to what is no number, whatever it is
      const auto is_other = [](PyObject* o) { return o == Py_None || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o); };
      if (!is_other(a) && !is_other(b)) { used(a); used(b); }
      return;
    }
    using Kind = symbolic::NumberStep::Kind;
    static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
    static constexpr Kind kKinds[] = {Kind::less, Kind::less_equal, Kind::equal, Kind::not_equal, Kind::less, Kind::less_equal};
    const bool is_turned = op >= Py_GT;
    steps.push_back({kKinds[op], is_turned ? *y : *x, is_turned ? *x : *y, 0, holds, where});
    return;
  }
  if (!PyLong_Check(a) || !PyLong_Check(b) || PyBool_Check(a) || PyBool_Check(b)) { used(a); used(b); return; }
  const long long x = PyLong_AsLongLong(a), y = PyLong_AsLongLong(b);
  if (PyErr_Occurred()) { PyErr_Clear(); return; }
  using Kind = symbolic::Condition::Kind;
  symbolic::Condition c{Kind::equal, x, y, holds, where};
  switch (op) {
    case Py_EQ: break;
    case Py_NE: c.kind = Kind::not_equal; break;
    case Py_LT: c.kind = Kind::less; break;
    case Py_LE: c.kind = Kind::less_equal; break;
    case Py_GT: c.kind = Kind::less; std::swap(c.left, c.right); break;
    case Py_GE: c.kind = Kind::less_equal; std::swap(c.left, c.right); break;
  }
  conditions.push_back(std::move(c));
}

// What is an expression is written down; of everything else (bits, powers, floating point) the operands must not depend on sizes at all.
void SizeLog::computed(size_t op, PyObject* a, PyObject* b, PyObject* result) {
  enum : size_t { kAdd = 0, kAnd = 1, kFloorDiv = 2, kLeftShift = 3, kMul = 5, kMod = 6, kPower = 8, kRightShift = 9, kSub = 10, kDivide = 11 };
  const auto number = [](PyObject* o) -> std::optional<int64_t> {
    if (!PyLong_CheckExact(o)) return std::nullopt;
    const long long n = PyLong_AsLongLong(o);
    if (PyErr_Occurred()) { PyErr_Clear(); return std::nullopt; }
    return n;
  };
  if (PyFloat_CheckExact(result)) {
    using Step = symbolic::NumberStep::Kind;
    const auto left = step_number(a), right = step_number(b);
    const std::optional<Step> kind = op == kAdd ? std::optional(Step::add) : op == kSub ? std::optional(Step::sub) : op == kMul ? std::optional(Step::mul) : op == kDivide ? std::optional(Step::truediv)
                                   : op == kFloorDiv ? std::optional(Step::floordiv) : op == kMod ? std::optional(Step::mod) : op == kPower ? std::optional(Step::pow) : std::nullopt;
    if (kind && left && right) {
      const auto again = symbolic::compute_number(*kind, *left, *right);
      const double value = PyFloat_AS_DOUBLE(result);
      if (again && symbolic::Number::of(*again).same_as(symbolic::Number::of(value))) { steps.push_back({*kind, *left, *right, value, true, {}}); return; }
    }
  }
  const auto x = number(a), y = number(b), r = number(result);
  if (x && y && r) {
    using Kind = symbolic::Computation::Kind;
    const auto is = [&](Kind kind, int64_t right) { computations.push_back({kind, *x, right, *r}); };
    const auto divides = [&](int64_t by) { conditions.push_back({symbolic::Condition::Kind::not_equal, by, 0, true, {}}); };   // by 0 Python raises
    const bool is_shift = *y >= 0 && *y < 62;
    switch (op) {
      case kAdd: return is(Kind::add, *y);
      case kSub: return is(Kind::sub, *y);
      case kMul: return is(Kind::mul, *y);
      case kFloorDiv: divides(*y); return is(Kind::floor_div, *y);
      case kMod: divides(*y); return is(Kind::mod, *y);
      case kLeftShift: if (!is_shift) break; used(b); return is(Kind::mul, int64_t{1} << *y);
      case kRightShift: if (!is_shift) break; used(b); return is(Kind::floor_div, int64_t{1} << *y);
      case kAnd: if (*y <= 0 || ((*y + 1) & *y) != 0) break; used(b); return is(Kind::mod, *y + 1);
      default: break;
    }
  }
  used(a);
  used(b);
}

namespace {
// Containers that are being looked through: one that contains itself is not looked through again. Under the GIL, which nothing here lets go.
struct Inside {
  static std::vector<PyObject*>& all() { static std::vector<PyObject*> open; return open; }
  bool is_new;
  explicit Inside(PyObject* o) : is_new(std::find(all().begin(), all().end(), o) == all().end()) { all().push_back(o); }
  ~Inside() { all().pop_back(); }
};
}  // namespace

void SizeLog::used(PyObject* o) {
  if (!o) return;
  if (PyLong_Check(o)) {
    const long long n = PyLong_AsLongLong(o);
    if (PyErr_Occurred()) { PyErr_Clear(); uses.push_back(0); return; }
    uses.push_back(n);
  } else if (PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) used(PyTuple_GET_ITEM(o, i));
  } else if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    used(s->start);
    used(s->stop);
    used(s->step);
  } else if (PyFloat_Check(o)) {
    uses.push_back(std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o)));
  } else if (const Inside inside(o); inside.is_new && PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) used(PyList_GET_ITEM(o, i));
  } else if (inside.is_new && PyDict_Check(o)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      used(key);
      used(value);
    }
  }
}

void SizeLog::used_floats(PyObject* o) {
  if (!o) return;
  if (PyFloat_Check(o)) { used(o); return; }
  const Inside inside(o);
  if (!inside.is_new) return;
  if (PyTuple_Check(o)) for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) used_floats(PyTuple_GET_ITEM(o, i));
  else if (PyList_Check(o)) for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) used_floats(PyList_GET_ITEM(o, i));
  else if (PyDict_Check(o)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) used_floats(value);
  }
}

}  // namespace cutaway::frames
