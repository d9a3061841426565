#include "compiler/frames/stance.h"

#include <string_view>
#include <utility>

#include "compiler/bytecode/dict_version.h"

namespace cutaway::frames {
namespace {

using bytecode::has_version;
using bytecode::ObjectRef;

// A variable of a module. Every call of a compiled function asks: while neither sys.modules nor the module's names have changed, it is what it was. No two states of
// dictionaries have the same version. No initializer that calls Python (docs/notes/frames.md, threads).
struct Variable {
  const char *module, *name;
  PyObject *module_text = nullptr, *name_text = nullptr;
  uint64_t modules_version = 0, names_version = 0;
  PyObject *names = nullptr, *last = nullptr;   // borrowed; what they were at those versions

  // The module's names; borrowed, null without an exception while nobody has imported it.
  PyObject* home() {
    PyObject* modules = PyImport_GetModuleDict();
    if (has_version(modules, modules_version)) return names;
    if (!module_text) module_text = PyUnicode_InternFromString(module);
    PyObject* found = PyDict_GetItemWithError(modules, module_text);
    if (!found) PyErr_Clear();
    names = found && PyModule_Check(found) ? PyModule_GetDict(found) : nullptr;   // sys.modules holds the module
    modules_version = bytecode::dict_version(modules);
    return names;
  }
  PyObject* value() {
    PyObject* in = home();
    if (!in) return nullptr;
    if (has_version(in, names_version)) return last;
    if (!name_text) name_text = PyUnicode_InternFromString(name);
    last = PyDict_GetItemWithError(in, name_text);
    if (!last) PyErr_Clear();
    names_version = bytecode::dict_version(in);
    return last;
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
