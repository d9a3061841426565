// Interned strings that the protocols look up, made once a process, so that no lookup builds a string.
#pragma once
#include <Python.h>

namespace cutaway::capture {

#define CUTAWAY_NAMES(X)                                                                                                                \
  X(__call__) X(__init__) X(__new__) X(__getattr__) X(__getattribute__) X(__setattr__) X(__delattr__) X(__dict__) X(__class__)           \
  X(__get__) X(__set__) X(__delete__) X(__len__) X(__bool__) X(__iter__) X(__next__) X(__contains__) X(__getitem__) X(__setitem__)        \
  X(__delitem__) X(__eq__) X(__ne__) X(__lt__) X(__le__) X(__gt__) X(__ge__) X(__hash__) X(__str__) X(__repr__) X(__format__) X(__enter__)  \
  X(__exit__) X(__neg__) X(__pos__) X(__invert__) X(__abs__) X(__index__) X(__int__) X(__float__) X(__missing__) X(__name__) X(__qualname__) \
  X(__module__) X(__doc__) X(__defaults__) X(__kwdefaults__) X(__code__) X(__closure__) X(__globals__) X(__wrapped__) X(func_) X(__self__)  \
  X(__annotations__) X(__bases__) X(__mro__) X(__instancecheck__) X(__subclasscheck__) X(__post_init__) X(__reversed__) X(__set_name__)      \
  X(__init_subclass__) X(__slots__) X(__builtins__) X(__cause__) X(__context__) X(__traceback__) X(__suppress_context__) X(args) X(value)     \
  X(name) X(_value_) X(_name_) X(_parameters) X(_buffers) X(_modules) X(shape) X(grad) X(data) X(func) X(keywords) X(send) X(throw_) X(close)   \
  X(__round__) X(__trunc__) X(__floor__) X(__ceil__) X(__add__) X(__radd__) X(items) X(keys) X(values) X(forward) X(__torch_function__) X(_is_buffer) X(_is_param)          \
  X(append) X(cell_contents) X(gi_running) X(start) X(stop) X(step) X(default_factory) X(__notes__) X(with_traceback) X(add_note) X(__thisclass__) X(__self_class__) X(__classcell__)

struct Names {
#define CUTAWAY_NAME_ROW(n) PyObject* n;
  CUTAWAY_NAMES(CUTAWAY_NAME_ROW)
#undef CUTAWAY_NAME_ROW
};
/// The GIL is held.
const Names& names();

}  // namespace cutaway::capture
