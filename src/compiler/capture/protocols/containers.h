// Methods of lists, dictionaries, sets and deques that the trace models; sets made from views of dictionaries.
#pragma once
#include <Python.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Containers : protected Owners {
 public:
  explicit Containers(const Owners& owners) : Owners(owners) {}
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  void append(Value* list, Value* x, bool left = false);   ///< the same
  Value* deque_binary(int op, Value* a, Value* b, bool* is_known);   ///< + and *, where one side is a deque
  Value* deque_subscript(Value* v, Value* key, Value* x, bool deletes);   ///< x: to be stored
  Value* make_deque(PyTypeObject* t, std::vector<Value*> all, Py_ssize_t limit);
  bool deque_limit(Value* given, Py_ssize_t* limit);   ///< what maxlen= says; given may be null
  bool is_deque(Value* v);
  Value* view_binary(int op, Value* a, Value* b, bool* is_known);   ///< & | - ^, where one side is the keys or items of a dict
  Value* call_set_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  bool is_reversed(Value* v, bool* reversed);   // what sort() makes of its reverse=
  bool sort_values(std::vector<Value*>& all, Value* key, bool reverse, const Tail& tail = {}, Value* target = nullptr);   ///< target: the list that is sorted in place
  Value* call_container_method(PyTypeObject* owner, const char* name, Value* self, const Args& args, bool* known);

 private:
  Value* call_deque_method(std::string_view name, Value* self, const Args& args);
  Value* set_of_keys(PyObject* real);                  ///< a set of the trace with this content, in this order; steals
  Value* call_list_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  Value* call_dict_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  Value* change_set(std::string_view name, Value* self, const std::vector<PyObject*>& others);   ///< others: real sets, lists or dicts of keys
  bool sort_by_comparisons(std::vector<Value*>& all, const std::vector<Value*>& keys, bool reverse);
};

}  // namespace cutaway::capture
