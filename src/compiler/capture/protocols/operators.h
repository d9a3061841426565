// Operators and comparisons: constants are computed by Python itself, tensors go into the graph, classes are asked for their special methods.
#pragma once
#include <Python.h>

#include <cstddef>

#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Operators : protected Owners {
 public:
  explicit Operators(const Owners& owners) : Owners(owners) {}
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  Value* binary(int op, Value* a, Value* b);           ///< NB_ADD …
  Value* unary(int op, Value* v);                      ///< UNARY_NEGATIVE …
  Value* compare(int op, Value* a, Value* b);          ///< Py_LT …
  bool asks_right_first(Value* a, Value* b, const char* name, const char* reflected);   ///< of an operator
  int equal(Value* a, Value* b);                       ///< identity or ==, as containers compare
  Value* dunder(Value* v, const char* name, Value* other);   ///< a dunder written in Python; null without raising when there is none

 private:
  Value* set_in_place(size_t index, Value* a, Value* b);   ///< set.__ior__ and its like; the index is that of the plain operator
  Value* plain_compare(int op, Value* a, Value* b);    ///< the C types' own, whatever a subclass says; null without raising where they leave it to the other side
  Value* compare_by_classes(int op, Value* a, Value* b, bool user, const Tail& tail);
  bool is_plain_operand(Value* v);                     ///< an object of the user's or a number: other operands have protocols of C besides
  int compare_depth_ = 0;   ///< containers in containers; one that holds itself would never end
};

}  // namespace cutaway::capture
