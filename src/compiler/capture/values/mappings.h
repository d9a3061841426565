// Dictionaries and sets of the trace: keys, what was read from a real one, what the captured code wrote.
// A key is a real object: a constant itself, or a stand-in for something with identity. hook_numbers.cc: tables of hooks, whose keys count every hook of the process.
#pragma once
#include <Python.h>

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Mappings : protected Owners {
 public:
  explicit Mappings(const Owners& owners) : Owners(owners) {}
  ~Mappings();
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  /// A key for Mapping: the constant itself or a stand-in for the identity. Raises TypeError for what cannot be hashed.
  PyObject* key_of(Value* v);
  PyObject* key_to_find(Value* v);                     ///< for looking into a set: a set, which has no hash, stands for the frozen one
  Value* value_of_key(PyObject* key);
  PyObject* stand_in_of(Value* v) const { const auto it = stand_ins_.find(v); return it == stand_ins_.end() ? nullptr : it->second; }   ///< null: none yet
  void set_stand_in(Value* v, PyObject* key) { stand_ins_[v] = key; by_stand_in_[key] = v; }
  Value* stands_for(PyObject* key) const { const auto it = by_stand_in_.find(key); return it == by_stand_in_.end() ? nullptr : it->second; }   ///< null: the key is what it is
  bool is_hook_number(PyObject* key) const { return hook_numbers_.contains(key); }
  bool has_plain_keys(PyObject* real);                 ///< of a real dict or set: looking into it runs no code of the program
  void note_key_change(Value* v);                      ///< ends the graph where a key is written to whose class says what its hash is
  bool keys_were_compared();                           ///< since it was asked last: of two classes, one of which has its own hash
  void check_keys();                                   ///< ends the graph where a dict or set would have asked the class of a key for more than was foreseen
  bool has_own_hash(PyObject* key);
  void guard_key(PyObject* key);                       ///< an object that is looked for by identity in something real
  Value* dict_get(Value* dict, PyObject* key);
  void dict_set(Value* dict, PyObject* key, Value* v);
  bool dict_delete(Value* dict, PyObject* key);
  SourceRef item_source(Value* dict, PyObject* key);
  void set_load(Value* set);
  void dict_load(Value* dict);                         ///< wraps every item; guards the keys
  size_t dict_size(Value* dict) { dict_load(dict); return static_cast<size_t>(PyDict_GET_SIZE(body<Mapping>(dict).items)); }
  void set_add(Value* set, PyObject* key);
  bool set_discard(Value* set, PyObject* key);
  std::vector<PyObject*> keys_of(Value* mapping);      ///< in order; borrowed
  void check_hook_number(Value* mapping, PyObject* key);

 private:
  PyObject* key_of_method(Value* v);                   ///< methods of one object and function are equal
  PyObject* hashed_key(Value* v);                      ///< for an instance of a class with its own __hash__
  bool is_hook_table(Value* dict);
  void load_hooks(Value* dict);
  [[noreturn]] void start_over_by_number();

  std::unordered_map<PyObject*, Value*> by_stand_in_;
  std::unordered_map<Value*, PyObject*> stand_ins_;
  std::unordered_map<PyObject*, Value*> tuple_keys_;   ///< tuples of constants from outside that became keys: the next call's may be another, equal one
  std::vector<std::pair<Py_hash_t, Value*>> hashed_;   ///< keys whose classes have their own hash
  std::vector<std::pair<std::pair<Value*, Value*>, PyObject*>> method_keys_;   ///< function and self, and what stands for the method as a key
  std::unordered_map<PyObject*, Value*> hook_numbers_;  ///< keys, and the tables that have them
  bool asked_across_ = false;                          ///< a dict or a set has met two keys with the same hash, only one of which is of a class with its own
};

}  // namespace cutaway::capture
