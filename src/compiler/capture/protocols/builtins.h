// Functions, methods and types written in C that capture knows: builtins.cc, slots.cc (by descriptor), known_types.cc (calling a type), patterns.cc (match statements).
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Builtins : protected Owners {
 public:
  explicit Builtins(const Owners& owners) : Owners(owners) {}
  Builtins(const Builtins&) = delete;
  Builtins& operator=(const Builtins&) = delete;

  Value* checked_super(Value* type, Value* self);      ///< super(type, self)
  Value* call_builtin(Value* f, const Args& args);
  Value* call_known_type(PyTypeObject* t, const Args& args, bool* is_known);   ///< int, list, range, super, …
  Value* make_size(std::vector<Value*> items);         ///< torch.Size(items)
  Value* call_pure(PyObject* f, const Args& args);     ///< runs now: a C function that depends on its arguments alone
  Value* polyfill(PyObject* o);                        ///< the function in Python that stands for one of C; null for most
  Value* own_function(const char* name);               ///< a function of the package _polyfills
  bool is_identity_function(PyObject* f);
  bool is_give_up_function(PyObject* f);
  bool is_held_function(PyObject* f);
  void refuse_stand_in(Value* v);                      ///< it is one in Python for an object of C, and its type shows
  void note_stand_in(Value* v);                        ///< an instance of a class of the package _polyfills is made
  bool is_stand_in_iterator(const Value* v) const;     ///< made by a class of the package _polyfills
  void refuse_inside(Value* v);                        ///< the program asks for an attribute of an iterator that stands for one of C
  void end_before_stand_in(Value* v);                  ///< should the frame be refused: CPython then makes the object of C
  bool has_made_weak_reference() const { return has_made_weak_reference_; }
  Value* match_keys(Value* subject, Value* keys);
  Value* match_class(Value* subject, Value* klass, size_t positions, Value* names_wanted);

 private:
  Value* call_method_descriptor(PyObject* descriptor, const Args& args);
  Value* call_operator(std::string_view name, const Args& args);
  Value* call_pure_slot(PyObject* d, Value* self, const Args& args);
  Value* call_slot(PyObject* d, PyTypeObject* owner, const std::string& name, Value* self, const Args& args);
  Value* polyfill_class_method(PyTypeObject* t, const std::string& name);
  Value* make_super_of_frame();

  std::unordered_map<const Value*, uint64_t> stand_ins_;   ///< the step of the call that made each
  bool has_made_weak_reference_ = false;
};

}  // namespace cutaway::capture
