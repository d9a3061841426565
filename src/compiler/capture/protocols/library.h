// Objects of the library that keep state in C: context variables, remembered results, identities; numbers and arrays of numpy.
#pragma once
#include <Python.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Library : protected Owners {
 public:
  explicit Library(const Owners& owners) : Owners(owners) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  struct RememberedCall { Value* function; std::vector<Value*> args; std::vector<Keyword> keywords; Value* result; bool is_replayed; /* else a call around it makes it */ bool raises = false; };
  struct ContextToken { Value *token, *variable, *before; bool is_used; };
  Value* number_without_value(PyObject* number);       ///< equal to it, and good for being looked for
  Value* call_lru_cache(Value* f, const Args& args);
  Value* call_context_variable(Value* self, const std::string& name, const Args& args);
  const std::vector<std::pair<Value*, Value*>>& context_values() const { return context_values_; }
  bool call_dispatch(Value* f, const Args& args, Value** result);
  const std::vector<RememberedCall>& remembered_calls() const { return remembered_calls_; }   ///< of functions with a cache: replayed, so that the cache knows them
  Value* awaitable(Value* v);
  bool is_held(Value* v);
  static bool is_identity_number(PyObject* o);         ///< or a tuple with one
  bool has_identities() const { return !identities_.empty(); }
  Value* identity_number(void* of);
  std::string callable_text(Value* callable);
  void explain_not_iterable(Value* v, Value* callable);
  bool explain_not_mapping(Value* v, Value* callable);
  bool compute_with_numpy(PyObject* function, std::initializer_list<Value*> operands, Value** result);   ///< false: no number of numpy's is among them, or not its to say
  bool call_numpy(Value* f, const Args& args, Value** result);   ///< a function or class of numpy's, on numbers. False: another one
  bool has_numpy_number(const Args& args);
  // --- numpy_arrays.cc ---
  /// Of an array of numpy's, or of a number of its that the graph computes.
  struct ArrayState { PyObject* outside = nullptr; SourceRef source = nullptr; /* of `outside` */ PyObject* known = nullptr; /* its content, until somebody writes to it */ Value* tensor = nullptr; /* with its memory */ bool is_given = false; /* torch.from_numpy gave that */ };
  static bool is_array_value(Value* v);
  static bool is_array_number(Value* v);
  PyTypeObject* type_of_array(Value* v);               ///< numpy's own
  bool meet_array(Value* v);                           ///< a value from outside that is looked at for the first time. False: no array, or none for torch
  Value* array_sharing(Value* tensor);                 ///< Tensor.numpy()
  Value* tensor_of_array(Value* v);
  Value* tensor_from_array(Value* v);                  ///< torch.from_numpy()
  bool array_outside(Value* v, SourceRef* source) const;   ///< it exists outside
  bool answer_for_arrays(PyObject* function, const Args& args, Value** result);   ///< what _polyfills/numpy_arrays.py asks capture. False: another function
  bool call_on_arrays(PyObject* function, const Args& args, Value** result);   ///< a function of numpy's. False: another one
  bool call_with_arrays(PyObject* callable, const std::string& name, const Args& args, Value** result);   ///< a torch function that takes arrays. False: none is among them

 private:
  PyObject* key_in_cache(Value* f, const Args& args);
  void guard_key_in_cache(const Args& args);
  Value* take_remembered(Value* f, PyObject* key, const Args& args);
  bool remember_ahead(Value* f, const Args& args);
  Value* run_numpy(PyObject* function, PyObject* positional, PyObject* keywords);
  struct ArrayForm { std::vector<Value*> arrays; bool is_known = true, takes_tensors = false; };
  const ArrayState& array_state(Value* v);
  Value* new_array(ArrayState state, bool is_number);
  PyObject* known_array(Value* v);                     ///< null: its content is not known
  bool form_of(Value* v, ArrayForm& into, PyObject** form, PyObject** real, int depth = 0);
  PyObject* metas_of(const ArrayForm& given);
  PyObject* ask_numpy(PyObject* function, const ArrayForm& given, PyObject* form);
  void require_numpy_tensor(Value* tensor);
  Value* result_of_numpy(PyObject* o, const std::vector<Value*>* made);
  Value* run_on_arrays(PyObject* function, Value* args, Value* keywords);

  std::vector<ContextToken> context_tokens_;
  std::vector<std::pair<Value*, Value*>> context_values_;   ///< variable, what the program set
  std::vector<RememberedCall> remembered_calls_;
  int cache_depth_ = 0;                                ///< inside of how many functions with a cache the trace is
  std::unordered_map<void*, Value*> identities_;
  std::unordered_map<Value*, ArrayState> arrays_;
  std::unordered_map<PyObject*, std::pair<Value*, uint32_t>> roots_;   ///< known arrays that own memory -> the graph's tensor of it, and how often that was written to
};

}  // namespace cutaway::capture
