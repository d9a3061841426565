// Calls: arguments are bound as Python binds them, functions are inlined, classes are instantiated.
#pragma once
#include <Python.h>

#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Calls : protected Owners {
 public:
  explicit Calls(const Owners& owners) : Owners(owners) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  Value* call(Value* f, const Args& args);
  Value* call_python(Value* f, const Args& args);      ///< binds the arguments and interprets
  Value* instantiate(PyTypeObject* t, Value* klass, const Args& args);
  Value* new_instance(PyTypeObject* t, const Args& args, bool has_user_init);
  bool init_builtin(Value* v, PyObject* init, const Args& args);
  Value* call_method(Value* v, const char* name, const Args& args);
  void note_replaced(PyObject* by_polyfill) { replaced_ = by_polyfill; }   ///< what the polyfill that is called next stands for
  /// The number of arguments and their names are what a function, method or type of C takes; else raises what Python would. Args without self.
  bool takes(PyObject* callable, PyTypeObject* owner, const Args& args);

 private:
  Value* call_class(PyTypeObject* t, Value* klass, const Args& args);
  bool bind(Value* f, const Args& args, std::vector<Value*>& locals);

  int call_depth_ = 0;
  PyObject* replaced_ = nullptr;                       ///< what the polyfill that is called next stands for
};

}  // namespace cutaway::capture
