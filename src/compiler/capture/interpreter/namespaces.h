// Names that are looked up in dictionaries: globals, builtins, imports, bodies of classes, and text that is evaluated.
#pragma once
#include <Python.h>

#include <cstddef>

#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/guards/guard.h"

namespace cutaway::capture {

class Namespaces : protected Owners {
 public:
  explicit Namespaces(const Owners& owners) : Owners(owners) {}
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  std::nullptr_t raise_empty_cell(const Frame* frame, int slot);   ///< a variable that inner functions use has no value
  Value* locals_of_frame();                            ///< a new dict, as locals() returns it
  Value* load_name(Frame* frame, Value* space, PyObject* name);
  bool store_name(Frame* frame, PyObject* name, Value* v);   ///< v null: deleted
  Value* load_class_cell(Frame* frame, Value* space, int slot);
  bool setup_annotations(Frame* frame);
  Value* run_text(bool is_exec, const Args& args);
  Value* globals_of(Function& f);
  /// Globals or a module's names as a dictionary, read when asked. No source: held by the plan. No owner: itself.
  Value* namespace_dict(PyObject* real, const guards::Source* source, Value* owner);
  Value* load_global(Function& f, PyObject* name);
  Value* import_name(Frame* frame, PyObject* name, Value* from_list, Value* level);
};

}  // namespace cutaway::capture
