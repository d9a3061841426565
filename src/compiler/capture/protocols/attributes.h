// Attributes, looked up and stored by hand as CPython does: type, instance dictionary, descriptors; isinstance and issubclass. What is Python is inlined.
#pragma once
#include <Python.h>

#include <cstddef>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Attributes : protected Owners {
 public:
  explicit Attributes(const Owners& owners) : Owners(owners) {}
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  Value* getattr(Value* v, PyObject* name);
  Value* getattr(Value* v, const char* name);
  Value* load_method(Value* v, PyObject* name, Value** self);   ///< as getattr; a function found on the type comes unbound with *self set
  bool setattr(Value* v, PyObject* name, Value* x);
  bool delattr(Value* v, PyObject* name);
  Value* instance_dict(Value* v);                      ///< null when it has none
  bool is_data_descriptor(PyObject* found);                 ///< guards the version of a class that may lose its __set__
  PyObject* lookup_type(PyTypeObject* t, PyObject* name);   ///< borrowed, null without error; guards the type's version
  /// What a class says itself under a special name: a function, or a method of C that it took from elsewhere; called with the instance first. Null
  /// where it says nothing, so that C's own holds. Breaks where it is neither (None, a number, an object that can be called): Python knows what that means.
  PyObject* own_method(PyTypeObject* t, PyObject* name);
  bool has_c_base(Value* v);                           ///< an instance of a class that inherits from C what the trace does not model
  Value* special(Value* v, PyObject* name);            ///< bound dunder found on the type, or null without raising
  bool isinstance(Value* v, Value* type, bool* result);
  std::nullptr_t raise_no_attribute(Value* v, PyObject* name);
  std::nullptr_t raise_no_place(Value* v, PyObject* name);
  std::nullptr_t raise_empty_slot(Value* v, PyObject* name);
  Value* apply_descriptor(PyObject* found, Value* instance, Value* owner, PyObject* name, Value** self);
  Value* constant_or_wrap(PyObject* o);
  Value* generic_attribute(Value* v, PyObject* name, Value** self);
  Value* module_attribute(Value* v, PyObject* name);
  Value* super_attribute(Value* v, PyObject* name, Value** self);
  bool generic_setattr(Value* v, PyObject* name, Value* x);
  bool generic_delattr(Value* v, PyObject* name);
  bool issubclass(Value* v, Value* type, bool* result);
  PyObject* own_operator(PyTypeObject* t, PyObject* name);   ///< own_method, without what the module enum defines: that computes and does nothing else

 private:
  bool subclass_of(PyTypeObject* t, Value* type, bool* result);
  bool ask_metaclass(Value* type, PyObject* name, Value* v, bool* result, bool* failed);
  Value* getset_attribute(PyObject* found, Value* v, PyObject* name);
  Value* instance_attribute(Value* v, PyObject* name, Value** self);
  Value* module_member(Value* v, PyObject* name);
  Value* module_dict(Value* v);
  Value* class_attribute(Value* v, PyObject* name, Value** self);
  Value* function_attribute(Value* v, PyObject* name);
  bool set_plain_module_attribute(Value* v, PyObject* name, Value* x);
};

}  // namespace cutaway::capture
