#include "compiler/frames/same_plan.h"

#include <cstring>

namespace cutaway::frames {

std::optional<std::vector<int64_t>> integers_of(const Recipe& r) {
  if (r.kind != Recipe::Kind::constant) return std::nullopt;
  PyObject* o = r.object.get();
  const bool is_tuple = PyTuple_Check(o) && (PyTuple_CheckExact(o) || !std::strcmp(Py_TYPE(o)->tp_name, "torch.Size"));
  if (!is_tuple && !PyLong_CheckExact(o)) return std::nullopt;
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(o) : 1); ++i) {
    PyObject* item = is_tuple ? PyTuple_GET_ITEM(o, i) : o;
    if (!PyLong_CheckExact(item)) return std::nullopt;
    out.push_back(PyLong_AsLongLong(item));
    if (PyErr_Occurred()) { PyErr_Clear(); return std::nullopt; }
  }
  return out;
}

bool is_float(const Recipe& r) { return r.kind == Recipe::Kind::constant && PyFloat_CheckExact(r.object.get()); }

namespace {

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!PyLong_CheckExact(a) && !PyFloat_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyTuple_CheckExact(a) && !PyBytes_CheckExact(a) && !PyBool_Check(a) && !PyRange_Check(a)) return false;
  if (PyTuple_CheckExact(a)) {
    if (Py_SIZE(a) != Py_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < Py_SIZE(a); ++i)
      if (!same_object(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

bool same_recipes(const std::vector<Recipe>& a, const std::vector<Recipe>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Recipe &x = a[i], &y = b[i];
    if (x.kind != y.kind || x.index != y.index || x.base != y.base || x.parts != y.parts || x.names.size() != y.names.size()) return false;
    for (size_t n = 0; n < x.names.size(); ++n)
      if (!same_object(x.names[n].get(), y.names[n].get())) return false;
    if ((x.source != nullptr) != (y.source != nullptr) || (x.source && x.source->identity() != y.source->identity())) return false;
    if (same_object(x.object.get(), y.object.get()) || (is_float(x) && is_float(y))) continue;
    const auto mine = integers_of(x), theirs = integers_of(y);
    if (!mine || !theirs || mine->size() != theirs->size() || Py_TYPE(x.object.get()) != Py_TYPE(y.object.get())) return false;
  }
  return true;
}

bool same_effects(const std::vector<Effect>& a, const std::vector<Effect>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Effect &x = a[i], &y = b[i];
    if (x.kind != y.kind || x.target != y.target || x.key != y.key || x.value != y.value || x.parts != y.parts || x.before_node != y.before_node || !same_object(x.name.get(), y.name.get())) return false;
  }
  return true;
}

bool same_endings(const Ending& a, const Ending& b) {
  if (a.index() != b.index()) return false;
  if (const auto* r = std::get_if<ReturnValue>(&a)) return r->value == std::get<ReturnValue>(b).value;
  if (const auto* r = std::get_if<RaiseValue>(&a)) return r->exception == std::get<RaiseValue>(b).exception;
  if (const auto* x = std::get_if<Break>(&a)) {
    const auto& y = std::get<Break>(b);
    if (x->frames.size() != y.frames.size() || x->reason.id != y.reason.id) return false;
    for (size_t i = 0; i < x->frames.size(); ++i) {
      const OpenFrame &f = x->frames[i], &g = y.frames[i];
      if (f.code.get() != g.code.get() || f.globals.get() != g.globals.get() || f.instruction != g.instruction || f.locals != g.locals || f.stack != g.stack) return false;
    }
    return true;
  }
  return false;
}

bool same_guards(const std::vector<guards::Guard>& a, const std::vector<guards::Guard>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].kind != b[i].kind || a[i].source->identity() != b[i].source->identity() || !same_object(a[i].operand.get(), b[i].operand.get()) || a[i].number != b[i].number) return false;
  return true;
}

}  // namespace

bool same_plan(const Plan& a, const Plan& b) {
  if (a.inputs.size() != b.inputs.size() || a.output_count != b.output_count) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (a.inputs[i]->identity() != b.inputs[i]->identity()) return false;
  return same_recipes(a.recipes, b.recipes) && same_effects(a.effects, b.effects) && same_endings(a.ending, b.ending) && same_guards(a.guards, b.guards);
}

}  // namespace cutaway::frames
