// Instances of classes that derive from int, float or str and have operators of their own: objects with a plain number or text inside.
#pragma once
#include <Python.h>

#include <initializer_list>
#include <unordered_set>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

class Numbers : protected Owners {
 public:
  explicit Numbers(const Owners& owners) : Owners(owners) {}
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  Value* plain_or_self(Value* v) { values.force(v); Value* p = plain_of(v); return p ? p : v; }
  Value* plain_number(PyObject* o);                    ///< of an instance that exists
  Value* make_number(PyTypeObject* t, const Args& args);
  void note_made_number(PyObject* o) { made_numbers_.insert(o); }
  bool is_made_number(PyObject* o) const { return made_numbers_.contains(o); }
  bool holds_made_number(PyObject* o) const;           ///< it is one, or a tuple with one
  Value* binary_with_number(int op, Value* a, Value* b);
  Value* compare_with_number(int op, Value* a, Value* b);
  bool has_own(PyTypeObject* t, std::initializer_list<const char*> dunders);   ///< written in Python

 private:
  std::unordered_set<PyObject*> made_numbers_;         ///< numbers and texts of the program's classes that the captured code made, and that are constants here: each run makes its own
};

}  // namespace cutaway::capture
