// Names that are looked up in dictionaries: globals, builtins, imports, the bodies of classes, and text that is evaluated.
#include "compiler/capture/interpreter/namespaces.h"

#include <cstdint>

#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Namespaces::namespace_dict(PyObject* real, const guards::Source* source, Value* owner) {
  const bool outer = real == view.function->func_globals;
  Value* d = values.new_value(Kind::dict, &PyDict_Type);
  d->real = real;
  PyObject* module = PyDict_GetItem(real, names().__name__);   // shown in guards
  const char* shown = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  d->source = outer ? guards.sources().of(guards.sources().function(), SourceKind::function_globals) : source ? source : guards.sources().constant(real, shown ? shown : "");
  Mapping& m = values.give<Mapping>(d);
  m.items = values.keep(PyDict_New());
  m.is_loaded = false;
  m.is_globals = outer;
  m.owner = owner ? owner : d;
  values.meet(real, d);
  return d;
}

Value* Namespaces::globals_of(Function& f) {
  if (f.globals) return f.globals;
  PyObject* dict = f.globals_real;
  if (Value* seen = values.met(dict)) return f.globals = values.force(seen);
  return f.globals = namespace_dict(dict, nullptr, nullptr);
}

Value* Namespaces::load_global(Function& f, PyObject* name) {
  Value* globals = globals_of(f);
  if (Value* v = mappings.dict_get(globals, name)) return v;
  Value* const looked_at = values.met(f.builtins_real);   // the captured code may have put names there
  Value* builtins = looked_at ? values.force(looked_at) : nullptr;
  if (builtins && builtins->is_changed) {
    if (Value* v = mappings.dict_get(builtins, name)) return v;
  } else if (PyObject* o = PyDict_GetItemWithError(f.builtins_real, name)) {
    return values.wrap(o, guards.sources().builtin(name));
  }
  PyErr_Clear();
  guards.add(guards.sources().constant(f.builtins_real, "builtins"), GuardKind::lacks, name);
  return exceptions.raise(PyExc_NameError, std::string("name '") + PyUnicode_AsUTF8(name) + "' is not defined");
}

Value* Namespaces::import_name(Frame* frame, PyObject* name, Value* from_list, Value* level) {
  PyObject* level_object = values.as_constant(level);
  const long depth = level_object ? PyLong_AsLong(level_object) : 0;
  std::string full = PyUnicode_AsUTF8(name);
  if (depth > 0) {
    Value* package = mappings.dict_get(globals_of(values.function(frame->function)), values.keep(PyUnicode_InternFromString("__package__")));
    PyObject* p = package ? values.as_constant(package) : nullptr;
    if (!p || !PyUnicode_Check(p)) stop("import", "a relative import runs inside the captured code");
    std::string base = PyUnicode_AsUTF8(p);
    for (long i = 1; i < depth; ++i) base = base.substr(0, base.rfind('.'));
    full = full.empty() ? base : base + "." + full;
  }
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* module = PyDict_GetItemString(modules, full.c_str());
  if (!module) stop("import", "the module " + full + " is imported for the first time inside the captured code");
  PyObject* list = values.as_constant(from_list);
  if (!list || list == Py_None) {
    if (depth == 0)
      if (const size_t dot = full.find('.'); dot != std::string::npos) module = PyDict_GetItemString(modules, full.substr(0, dot).c_str());
  } else if (PyTuple_Check(list)) {
    // `from package import submodule` finds an attribute only once the submodule was imported.
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
      PyObject* item = PyTuple_GET_ITEM(list, i);
      PyObject* dict = PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
      if (dict && !PyDict_Contains(dict, item) && !PyDict_GetItemString(modules, (full + "." + PyUnicode_AsUTF8(item)).c_str()))
        stop("import", "from " + full + " import " + PyUnicode_AsUTF8(item) + " has not run before");
    }
  }
  return values.wrap_constant_object(module);
}

Value* Namespaces::load_name(Frame* frame, Value* space, PyObject* name) {
  if (space) {
    if (values.kind(space) == Kind::dict && !is_user_class(space->type)) {
      if (Value* v = mappings.dict_get(space, name)) return v;
    } else {
      if (Value* v = subscripts.subscript(space, values.constant(name))) return v;
      if (!exceptions.raised_is(PyExc_KeyError)) return nullptr;
      exceptions.take_raised();
    }
  }
  return load_global(values.function(frame->function), name);
}

bool Namespaces::store_name(Frame* frame, PyObject* name, Value* v) {
  if (!frame->names) throw std::runtime_error("a name is stored in a frame without a namespace");
  if (v) return subscripts.store_subscript(frame->names, values.constant(name), v);
  if (subscripts.delete_subscript(frame->names, values.constant(name))) return true;
  if (exceptions.raised_is(PyExc_KeyError)) { exceptions.take_raised(); exceptions.raise(PyExc_NameError, std::string("name '") + PyUnicode_AsUTF8(name) + "' is not defined"); }
  return false;
}

Value* Namespaces::load_class_cell(Frame* frame, Value* space, int slot) {
  PyObject* name = values.keep(PyUnicode_InternFromString(frame->code->slot_name(slot).c_str()));
  if (space) {
    Value* v = values.kind(space) == Kind::dict && !is_user_class(space->type) ? mappings.dict_get(space, name) : subscripts.subscript(space, values.constant(name));
    if (v) return v;
    if (exceptions.raised() && !exceptions.raised_is(PyExc_KeyError)) return nullptr;
    exceptions.take_raised();
  }
  Value* cell = frame->locals[static_cast<size_t>(slot)];
  if (Value* v = cell ? values.cell_contents(cell) : nullptr) return v;
  return raise_empty_cell(frame, slot);
}

std::nullptr_t Namespaces::raise_empty_cell(const Frame* frame, int slot) {
  const std::string& name = frame->code->slot_name(slot);
  if (frame->code->slot_kind(slot) == bytecode::SlotKind::free)
    return exceptions.raise(PyExc_NameError, "cannot access free variable '" + name + "' where it is not associated with a value in enclosing scope");
  return exceptions.raise(PyExc_UnboundLocalError, "cannot access local variable '" + name + "' where it is not associated with a value");
}

bool Namespaces::setup_annotations(Frame* frame) {
  Value* key = values.constant(names().__annotations__);
  const int there = subscripts.contains(frame->names, key);
  if (there < 0) return false;
  return there || subscripts.store_subscript(frame->names, key, values.make_dict());
}

/// Up to 3.12 one dictionary a frame, which every look brings up to date; since 3.13 a new one each time.
Value* Namespaces::locals_of_frame() {
  Frame* f = frame_stack.innermost();
  if (f->names) return f->names;
  if (!f->shown_locals || PY_VERSION_HEX >= 0x030D0000) f->shown_locals = values.make_dict();
  Value* d = f->shown_locals;
  for (int i = 0; i < f->code->slot_count(); ++i) {
    Value* v = f->locals[static_cast<size_t>(i)];
    if (v && f->code->slot_kind(i) != bytecode::SlotKind::local && values.kind(v) == Kind::cell) v = values.cell_contents(v);
    PyObject* name = values.keep(PyUnicode_InternFromString(f->code->slot_name(i).c_str()));
    if (v && v != values.null()) mappings.dict_set(d, name, v);
    else mappings.dict_delete(d, name);
  }
  return d;
}

/// eval and exec of text that is known: compiled now, interpreted like everything else.
Value* Namespaces::run_text(bool is_exec, const Args& args) {
  const char* what = is_exec ? "exec() is called" : "eval() is called";
  if (!args.count || args.count > 3 || args.keyword_count) stop("eval", what);
  PyObject* source = values.as_constant(args[0]);
  if (!source) stop("eval", std::string(what) + " with text that is not known while capturing");
  PyObject* code = source;
  if (PyUnicode_Check(source)) {
    static PyObject* const compile = PyDict_GetItemString(PyEval_GetBuiltins(), "compile");
    PyObject* stripped = is_exec ? Py_NewRef(source) : PyObject_CallMethod(source, "lstrip", "s", " \t");
    code = stripped ? PyObject_CallFunction(compile, "Ossi", stripped, "<string>", is_exec ? "exec" : "eval", frame_stack.innermost()->code->object()->co_flags & PyCF_MASK) : nullptr;
    Py_XDECREF(stripped);
    if (!code) { PyErr_Clear(); stop("eval", std::string(what) + " with text that cannot be compiled"); }
    values.keep(code);
  }
  if (!PyCode_Check(code) || reinterpret_cast<PyCodeObject*>(code)->co_nfreevars) stop("eval", std::string(what) + " with something that is neither text nor code");
  const auto given = [&](size_t i) { return args.count > i && !values.is_constant(args[i], Py_None) ? values.force(args[i]) : nullptr; };
  Function& caller = values.function(frame_stack.innermost()->function);
  Value *globals = given(1), *space = given(2);
  if (globals && globals->kind != Kind::dict) stop("eval", std::string(what) + " with globals that are not a dict");
  if (!space) space = globals ? globals : locals_of_frame();
  if (!globals) globals = globals_of(caller);
  static PyObject* const builtins_name = PyUnicode_InternFromString("__builtins__");
  if (!mappings.dict_get(globals, builtins_name)) mappings.dict_set(globals, builtins_name, values.wrap_constant_object(caller.builtins_real));
  else if (given(1) && globals != globals_of(caller)) {
    Value* own = values.force(mappings.dict_get(globals, builtins_name));
    if (own->real != caller.builtins_real && !(own->kind == Kind::module && PyModule_GetDict(own->real) == caller.builtins_real)) stop("eval", std::string(what) + " with builtins of its own");
  }
  Value* f = values.make_function();
  Function& fn = body<Function>(f);
  fn.code = reinterpret_cast<PyCodeObject*>(code);
  fn.globals = globals;
  fn.globals_real = globals->real;
  if (!globals->real) fn.globals_made_at = frame_stack.open_frames().back()->step;
  fn.builtins_real = caller.builtins_real;
  fn.name = fn.code->co_name;
  fn.qualname = fn.code->co_qualname;
  Frame* frame = frame_stack.make_frame(f);
  frame->names = space;
  Value* r = interpreter.run_inlined(frame);
  return r && is_exec ? values.none() : r;
}

}  // namespace cutaway::capture
