#include "compiler/capture/values/guard_log.h"

#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"

namespace cutaway::capture {

void GuardLog::add(SourceRef source, GuardKind kind, PyObject* operand, int64_t number) {
  if (!source) return;
  if (source->kind == SourceKind::constant && kind != GuardKind::type_version && kind != GuardKind::const_eq && kind != GuardKind::length && kind != GuardKind::dict_keys) {
    if (kind == GuardKind::id || kind == GuardKind::type || kind == GuardKind::code) return;   // the object itself is part of the plan
  }
  guards::Guard g;
  g.source = source;
  g.kind = kind;
  g.operand = guards::ObjectRef::borrow(operand);
  g.number = number;
  if (frame_stack.innermost()) {
    for (Frame* f = frame_stack.innermost(); f; f = f->caller) {
      g.place.file = f->code->file();
      g.place.line = f->code->instructions()[f->pc].line;
      if (g.place.line) break;
    }
  }
  guards_.push_back(std::move(g));
}

// Once it has run, Dynamo counts in a class of its own at every call and has every new module tell that class; capture answers that call itself.
static bool is_bookkeeping_of_dynamo(PyTypeObject* t) {
  if (std::string_view(t->tp_name) != "GenerationTracker") return false;
  PyObject* module = PyDict_GetItemWithError(t->tp_dict, names().__module__);
  if (!module) PyErr_Clear();
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch._dynamo.mutation_guard") == 0;
}

PyTypeObject* ClassData::handle_class() {
  static auto* const handle = reinterpret_cast<PyTypeObject*>(find_member("torch.utils.hooks", "RemovableHandle"));
  return handle;
}

PyObject* ClassData::handle_number() {
  static PyObject* const name = PyUnicode_InternFromString("next_id");
  return name;
}

void GuardLog::add_type_version(PyTypeObject* t) {
  if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || !guarded_types_.insert(t).second) return;
  if (is_bookkeeping_of_dynamo(t)) return;
  if (t == ClassData::handle_class() && !class_data.has_handles()) {   // their number is data, as if the captured code wrote to it
    class_data.all.emplace_back(guards::ObjectRef::borrow(reinterpret_cast<PyObject*>(t)), guards::ObjectRef::borrow(ClassData::handle_number()));
    throw StartOver{};
  }
  _PyType_Lookup(t, names().__class__);   // gives the type a version where it has none
  add(sources().constant(reinterpret_cast<PyObject*>(t)), GuardKind::type_version, reinterpret_cast<PyObject*>(t));
  guards_.back().content = guards::ClassContent::of(t, class_data.all);
}

}  // namespace cutaway::capture
