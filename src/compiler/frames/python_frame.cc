#include "compiler/frames/python_frame.h"

#include <atomic>

#include "compiler/bytecode/code.h"

#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030C0000
#undef _PyGC_FINALIZED   // defined by the public headers and by the internal ones
#endif
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace cutaway::frames {
namespace {

using Frame = _PyInterpreterFrame;
#if PY_VERSION_HEX >= 0x030D0000
PyCodeObject* code_of(const Frame* f) { return reinterpret_cast<PyCodeObject*>(f->f_executable); }   // the hook sees frames of code alone
void set_code(Frame* f, PyObject* code) {
  Py_SETREF(f->f_executable, Py_NewRef(code));
  f->instr_ptr = _PyCode_CODE(reinterpret_cast<PyCodeObject*>(code));   // the one that runs next
}
#else
PyCodeObject* code_of(const Frame* f) { return f->f_code; }
#if PY_VERSION_HEX >= 0x030C0000
void set_code(Frame* f, PyObject* code) {
  Py_SETREF(f->f_code, reinterpret_cast<PyCodeObject*>(Py_NewRef(code)));
  f->prev_instr = _PyCode_CODE(reinterpret_cast<PyCodeObject*>(code)) - 1;   // the one that ran last
}
#endif
#endif
#if PY_VERSION_HEX >= 0x030C0000
PyObject* function_of(Frame* f) { return f->f_funcobj; }
const auto get_extra = PyUnstable_Code_GetExtra;
const auto set_extra = PyUnstable_Code_SetExtra;
const auto request_index = PyUnstable_Eval_RequestCodeExtraIndex;
#else
PyObject* function_of(Frame* f) { return reinterpret_cast<PyObject*>(f->f_func); }
const auto get_extra = _PyCode_GetExtra;
const auto set_extra = _PyCode_SetExtra;
const auto request_index = _PyEval_RequestCodeExtraIndex;
#endif

FrameHandler handler = nullptr;
thread_local bool shown = false;
thread_local PyCodeObject* native_once = nullptr;
int regions = 0;   // shown ones in the process; the GIL is held where it changes

#if PY_VERSION_HEX >= 0x030C0000
// From 3.12 on the evaluator clears and pops its frame, by functions that CPython does not export. Letting it run a code object that
// only returns does the same.
PyObject* drained_code = nullptr;
void make_drained_code() {   // at the start: later a hook of the program's (sys.addaudithook) would run in the middle of a frame
  PyObject* names = PyDict_New();
  PyObject* done = PyRun_String("def drained(): return None\ncode = drained.__code__", Py_file_input, names, names);
  Py_XDECREF(done);
  drained_code = Py_XNewRef(PyDict_GetItemString(names, "code"));
  Py_DECREF(names);
}
void drain(PyThreadState* thread, Frame* frame) {
  PyObject* raised = PyErr_GetRaisedException();
  set_code(frame, drained_code);
  PyObject* none = _PyEval_EvalFrameDefault(thread, frame, 0);
  Py_XDECREF(none);
  if (raised) PyErr_SetRaisedException(raised);
}
#endif

// A frame that raised has put itself in front of the traceback.
PyObject* run_it(PyThreadState* thread, Frame* frame) {
  PyCodeObject* code = code_of(frame);
  const CodeSlot* slot = get_code_slot(code);
  if (!slot || !slot->leaves_no_trace()) return _PyEval_EvalFrameDefault(thread, frame, 0);
  PyObject* const keep = Py_NewRef(reinterpret_cast<PyObject*>(code));
  PyObject* result = _PyEval_EvalFrameDefault(thread, frame, 0);
  if (!result) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    auto* first = reinterpret_cast<PyTracebackObject*>(trace && PyTraceBack_Check(trace) ? trace : nullptr);
    PyCodeObject* of = first ? PyFrame_GetCode(first->tb_frame) : nullptr;
    Py_XDECREF(of);   // the frame has it
    if (of == code) {
      trace = Py_XNewRef(reinterpret_cast<PyObject*>(first->tb_next));
      Py_DECREF(first);
      if (value && PyExceptionInstance_Check(value)) PyException_SetTraceback(value, trace ? trace : Py_None);
    }
    PyErr_Restore(type, value, trace);
  }
  Py_DECREF(keep);
  return result;
}

PyObject* hook(PyThreadState* thread, Frame* frame, int throws) {
  if (!shown || throws) return _PyEval_EvalFrameDefault(thread, frame, throws);
  PyCodeObject* code = code_of(frame);
  if (native_once == code) {
    native_once = nullptr;
    return _PyEval_EvalFrameDefault(thread, frame, throws);
  }
  PyObject* function = function_of(frame);
  if ((code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS)) != (CO_OPTIMIZED | CO_NEWLOCALS) || (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) ||
      !function || !PyFunction_Check(function))
    return _PyEval_EvalFrameDefault(thread, frame, throws);
  const int arguments = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
  guards::FrameView view{reinterpret_cast<PyFunctionObject*>(function), code, frame->localsplus, arguments};
  ResultCheck check;
  PyObject* result = handler(view, check);
  if (result == kRunIt) return run_it(thread, frame);
  if (result == kRunItHidden) {
    shown = false;
    result = _PyEval_EvalFrameDefault(thread, frame, throws);
    shown = true;
    return result;
  }
  if (result == kRunItChecked) return check(run_it(thread, frame));
#if PY_VERSION_HEX >= 0x030C0000
  drain(thread, frame);
#endif
  return result;
}

void free_slot(void* slot) { delete static_cast<CodeSlot*>(slot); }
Py_ssize_t slot_index() {
  static const Py_ssize_t index = request_index(&free_slot);
  return index;
}

}  // namespace

bool set_frame_handler(FrameHandler h) {
  if (!bytecode::is_supported_python()) return false;
#if PY_VERSION_HEX >= 0x030C0000
  if (!drained_code) make_drained_code();
  if (!drained_code) { PyErr_Clear(); return false; }
#endif
  handler = h;
  return true;
}

HookScope::HookScope(Frames frames) : before_(shown), counted_(false) {
  if (frames == Frames::shown && handler) {
    counted_ = true;
    if (regions++ == 0) _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), &hook);
  }
  shown = frames == Frames::shown && handler;
}
HookScope::~HookScope() {
  shown = before_;
  if (counted_ && --regions == 0) _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), &_PyEval_EvalFrameDefault);
}
void run_next_natively(PyCodeObject* code) { native_once = code; }

CodeSlot* get_code_slot(PyCodeObject* code) {
  void* slot = nullptr;
  if (get_extra(reinterpret_cast<PyObject*>(code), slot_index(), &slot) != 0) { PyErr_Clear(); return nullptr; }
  return static_cast<CodeSlot*>(slot);
}
void set_code_slot(PyCodeObject* code, CodeSlot* slot) {
  delete get_code_slot(code);
  set_extra(reinterpret_cast<PyObject*>(code), slot_index(), slot);
}

}  // namespace cutaway::frames
