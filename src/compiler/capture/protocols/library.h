// Objects of the library that keep state in C: context variables, remembered results, identities; numbers and arrays of numpy.
#pragma once
#include <Python.h>

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
  static bool is_array(Value* v);                      ///< an array from outside
  bool call_with_arrays(PyObject* callable, const std::string& name, const Args& args, Value** result);   ///< a torch function that takes arrays. False: none is among them

 private:
  PyObject* key_in_cache(Value* f, const Args& args);
  void guard_key_in_cache(const Args& args);
  Value* take_remembered(Value* f, PyObject* key, const Args& args);
  bool remember_ahead(Value* f, const Args& args);
  Value* run_numpy(PyObject* function, PyObject* positional, PyObject* keywords);
  Value* array_as_tensor(Value* v);                    ///< what torch.from_numpy makes of it; null: torch cannot

  std::vector<ContextToken> context_tokens_;
  std::vector<std::pair<Value*, Value*>> context_values_;   ///< variable, what the program set
  std::vector<RememberedCall> remembered_calls_;
  int cache_depth_ = 0;                                ///< inside of how many functions with a cache the trace is
  std::unordered_map<void*, Value*> identities_;
};

}  // namespace cutaway::capture
