// The values of one attempt, and what keeps them alive. Values are made here, passed by pointer, and freed together at the end.
// A value from outside starts lazy: force() looks at it, which adds the guard and sets the kind. The pointer is the identity of everything mutable.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Values : protected Owners {
 public:
  explicit Values(const Owners& owners);
  ~Values();
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  Value* constant(PyObject* o);                       ///< keeps a reference
  Value* constant_steal(PyObject* o);                 ///< null (a Python error is set) becomes raised()
  Value* wrap(PyObject* o, SourceRef source);         ///< of something outside: lazy
  Value* wrap_constant_object(PyObject* o);           ///< any object that the trace may reach by identity: its source is the object itself
  Value* constant_kind(PyObject* f);                  ///< a constant with the kind of its type: a class, a C function
  Value* force(Value* v) { return v->kind == Kind::lazy ? force_slow(v) : v; }
  Kind kind(Value* v) { return force(v)->kind; }
  PyTypeObject* type_of(Value* v) { return force(v)->type; }
  /// The value as a real immutable object (borrowed), or null when it is not one: containers of constants count.
  PyObject* as_constant(Value* v);
  bool is_constant(Value* v, PyObject* o) { return kind(v) == Kind::constant && v->real == o; }
  Value* none() { return none_; }
  Value* boolean(bool b) { return b ? true_ : false_; }
  Value* integer(long long i);
  Value* text(std::string_view s);
  Value* make_tuple(std::vector<Value*> items, PyTypeObject* type = &PyTuple_Type);
  Value* make_list(std::vector<Value*> items);
  Value* make_dict();
  Value* make_set();
  Value* make_slice(Value* start, Value* stop, Value* step);
  Value* make_cell(Value* contents);
  Value* make_method(Value* function, Value* self);
  Value* bind_c_method(PyObject* descriptor, Value* self);   ///< what [].append is
  Value* make_object(PyTypeObject* type);
  Value* make_iterator(Iterator::What, Value* base);
  Value* make_function();
  Value* make_view(View::What, Value* dict);
  Value* make_super(Value* type, Value* self, PyTypeObject* start);
  Value* make_partial(Value* function, const Args& bound);
  Value* make_tensor(PyObject* fake);                 ///< one fake, one value
  void bind_fake(Value* v, PyObject* fake);
  Value* of_fake(PyObject* fake) const { const auto it = by_fake_.find(fake); return it == by_fake_.end() ? nullptr : it->second; }
  Value* met(PyObject* o) const { const auto it = by_object_.find(o); return it == by_object_.end() ? nullptr : it->second; }   ///< the value of a real object with identity; null: none yet
  void meet(PyObject* o, Value* v) { by_object_[o] = v; }
  uint32_t count() const { return static_cast<uint32_t>(values_.size()); }
  const std::deque<Tensor>& tensor_bodies() const { return std::get<std::deque<Tensor>>(bodies_); }
  Value* new_value(Kind, PyTypeObject*);
  template <class Body> Body& give(Value* v) { v->body = &std::get<std::deque<Body>>(bodies_).emplace_back(); return *static_cast<Body*>(v->body); }   ///< a body of its kind
  void let_go(PyObject* o);                            ///< of what keep() was given, before the trace ends
  Value* null() { return null_; }
  PyObject* keep(PyObject* o) { keep_.push_back(o); return o; }   ///< takes the reference, until the trace ends
  std::vector<Value*>& items(Value* sequence) { if (!body<Sequence>(sequence).is_loaded) load(sequence); return body<Sequence>(sequence).items; }
  Function& function(Value* f) { if (!body<Function>(f).is_loaded) load_function(f); return body<Function>(f); }
  Value* cell_contents(Value* cell);                   ///< null without raising when empty
  void set_cell(Value* cell, Value* contents);
  std::vector<Value*> met_with_identity(PyTypeObject* t);   ///< real objects of the type that the trace looked at
  bool same_identity(Value* a, Value* b);              ///< `a is b`
  std::string describe(Value* v);                      ///< for sentences: "a list of 3 items"
  bool has_described_weak_references() const { return has_described_weak_references_; }   ///< one, or something of the modules that make them
  bool stands_for_c(Value* function);                  ///< a function of the package _polyfills
  void end_tensors();                                  ///< torch is as it was before the trace
  void force_items(Value* tuple);   ///< guards its length; each item when it is used

 private:
  void load(Value* sequence);                          ///< wraps the items of a real tuple or list
  Value* force_slow(Value*);
  void load_function(Value*);

  std::deque<Value> values_;
  std::tuple<std::deque<Tensor>, std::deque<Sequence>, std::deque<Mapping>, std::deque<Slice>, std::deque<Cell>, std::deque<Function>, std::deque<Method>, std::deque<Object>, std::deque<View>,
             std::deque<Super>, std::deque<Partial>, std::deque<Iterator>, std::deque<Generator>, std::deque<Number>> bodies_;
  std::vector<PyObject*> keep_;
  std::unordered_map<PyObject*, Value*> by_fake_;
  std::unordered_map<PyObject*, Value*> by_object_;    ///< real objects that have identity
  Value *none_, *true_, *false_, *null_;
  bool has_described_weak_references_ = false;
};

}  // namespace cutaway::capture
