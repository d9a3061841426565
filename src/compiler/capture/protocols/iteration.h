// Iterators of the trace: what iter() and next() return, unpacking, updating one container from another.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Iteration : protected Owners {
 public:
  explicit Iteration(const Owners& owners) : Owners(owners) {}
  Iteration(const Iteration&) = delete;
  Iteration& operator=(const Iteration&) = delete;

  Value* iter(Value* v);
  Value* plain_iter(Value* v);                         ///< the C type's own; null without raising where it has none
  /// Every item, one by one, as it comes: what is iterated may look at what `take` fills. False when something raised.
  template <class Take> bool for_each(Value* v, Take&& take) {
    endings.take_tail();
    Value* it = iter(v);
    if (!it) return false;
    for (bool done = false;;) {
      Value* x = next(it, &done);
      if (done) return true;
      if (!x || !take(x)) return false;
    }
  }
  bool extend(Value* list, Value* more);               ///< a list or deque
  Value* next(Value* iterator, bool* is_exhausted);
  const char* ending_of_items(Value* iterator);        ///< of a loop of C over what breaks; null: it cannot go on
  bool unpack(Value* v, std::vector<Value*>* into, PyTypeObject* as = nullptr, size_t most = SIZE_MAX);   ///< every item, or so many; as: the result of the instruction, a list or a tuple
  bool unpack_for_targets(Value* v, std::vector<Value*>* into, size_t most = SIZE_MAX, size_t before = 0);   ///< the same for `a, b = v`, whose error has other words; before: those in front of a starred target
  bool update_by_keywords(Value* dict, const Args& args);
  bool dict_update(Value* into, Value* from, Value* called = nullptr);   ///< called: with these keywords, of which none may come twice
  Value* iterator_of_items(std::vector<Value*> items);
  Value* iterate_mapping(Value* dict, View::What shows);

 private:
  Value* next_item(Value* iterator, bool* is_exhausted);   ///< the same; what the iterator calls may have raised StopIteration, which is its end, too
  Value* set_iterator(Value* set, std::vector<Value*> all);
};

}  // namespace cutaway::capture
