// What containers answer by protocol: truth, length, items, slices, membership.
#pragma once
#include <Python.h>

#include <cstddef>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Subscripts : protected Owners {
 public:
  explicit Subscripts(const Owners& owners) : Owners(owners) {}
  Subscripts(const Subscripts&) = delete;
  Subscripts& operator=(const Subscripts&) = delete;

  int truth(Value* v);                                 ///< -1 when raised
  Value* length(Value* v);
  Value* subscript(Value* v, Value* key);
  bool store_subscript(Value* v, Value* key, Value* x);
  bool delete_subscript(Value* v, Value* key);
  int contains(Value* container, Value* x);
  PyObject* index_object(Value* v);                    ///< what operator.index returns, borrowed; null when raised
  /// The same as a position. `overflow`: raised where it does not fit, null where the nearest number that fits will do.
  bool index_number(Value* v, Py_ssize_t* n, PyObject* overflow = PyExc_IndexError);
  bool argument_number(Value* v, Py_ssize_t* n);       ///< the same for a method of C, which has other words for what does not fit
  bool ask_length(Value* v);                           ///< as Python asks how long something may be that it will iterate over; false when raised
  bool length_hint(Value* v, Value** hint);            ///< what __length_hint__ says; *hint stays where there is none
  Value* plain_subscript(Value* v, Value* key);        ///< the C type's own, whatever a subclass says
  bool plain_store_subscript(Value* v, Value* key, Value* x);
  bool plain_delete_subscript(Value* v, Value* key);
  int plain_contains(Value* container, Value* x);
  Value* plain_length(Value* v);

 private:
  bool slice_range(Value* key, Value* sequence, Py_ssize_t* start, Py_ssize_t* step, Py_ssize_t* count);
};

}  // namespace cutaway::capture
