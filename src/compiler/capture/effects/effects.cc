#include "compiler/capture/effects/effects.h"

#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

void Effects::mark_changed(Value* v) {
  ++writes_;
  if (v->kind == Kind::dict && body<Mapping>(v).partial) stop("partial-store", "the keywords of a partial are changed");
  mappings.note_key_change(v);
  note_watched(v);
  if (!v->real) return;
  ++real_writes_;
  changed_at_[v] = tensors.node_count();
  if (v->is_changed) return;
  v->is_changed = true;
  changed_.push_back(v);
}

bool Effects::may_be_read_by(PyObject* called) {
  if (changed_.empty()) return false;
  static PyObject* const may_read = polyfill_named("may_read");
  PyObject* written = values.keep(PyList_New(0));
  for (const Value* v : changed_) PyList_Append(written, v->real);
  PyObject* reads = PyObject_CallFunctionObjArgs(may_read, called, written, nullptr);
  if (!reads) PyErr_Clear();
  return values.keep(reads ? reads : Py_NewRef(Py_True)) == Py_True;
}

}  // namespace cutaway::capture
