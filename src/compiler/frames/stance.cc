#include "compiler/frames/stance.h"

#include <string_view>
#include <utility>

namespace cutaway::frames {
namespace {

using bytecode::ObjectRef;

// A variable of a module, with its names kept: every call of a compiled function asks. No initializer that calls Python (docs/notes/frames.md, threads).
struct Variable {
  const char *module, *name;
  PyObject *module_text = nullptr, *name_text = nullptr;

  // The module's names; borrowed, null without an exception while nobody has imported it.
  PyObject* home() {
    if (!module_text) module_text = PyUnicode_InternFromString(module);
    ObjectRef found = ObjectRef::steal(PyImport_GetModule(module_text));
    if (!found) PyErr_Clear();
    return found && PyModule_Check(found.get()) ? PyModule_GetDict(found.get()) : nullptr;   // sys.modules holds the module
  }
  PyObject* value() {
    PyObject* names = home();
    if (!names) return nullptr;
    if (!name_text) name_text = PyUnicode_InternFromString(name);
    return PyDict_GetItem(names, name_text);
  }
};
Variable stance_variable{"torch._dynamo.eval_frame", "_stance"};
Variable break_variable{"torch._dynamo.utils", kBreakSwitch};

std::string_view text_or_nothing(PyObject* o) {
  const char* text = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

Stance read_stance(PyObject* o) {
  using Kind = Stance::Kind;
  ObjectRef name = ObjectRef::steal(PyObject_GetAttrString(o, "stance"));
  ObjectRef backend = ObjectRef::steal(PyObject_GetAttrString(o, "backend"));
  PyErr_Clear();
  const std::string_view stance = text_or_nothing(name.get());
  Stance out;
  if (stance == "default") out.kind = Kind::compile;
  else if (stance == "eager_on_recompile") out.kind = Kind::eager_on_recompile;
  else if (stance == "fail_on_recompile") out.kind = Kind::fail_on_recompile;
  else if (stance == "eager_then_compile" || stance == "aot_eager_then_compile") out.kind = Kind::eager_first;
  else out.kind = Kind::force_eager;
  if (out.kind == Kind::compile && backend && backend.get() != Py_None) out.backend = std::move(backend);
  return out;
}

}  // namespace

const Stance& current_stance() {
  static const Stance none;
  static auto* seen = new std::pair<ObjectRef, Stance>;   // torch makes a new object for each change
  PyObject* now = stance_variable.value();
  if (!now) return none;
  if (seen->first.get() != now) {
    Stance read = read_stance(now);
    *seen = {ObjectRef::borrow(now), std::move(read)};
  }
  return seen->second;
}

PyObject* break_switch_home() { return break_variable.home(); }
bool breaks_raise_now() { return break_variable.value() == Py_True; }

}  // namespace cutaway::frames
