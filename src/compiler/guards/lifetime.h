// What a compiled entry needs and must not own: classes, functions, objects that it names by identity. The code object that has the entry may live as long
// as the process, and garbage collection does not see through it. Once such an object is gone, no call can fit any more, and the entry goes.
#pragma once
#include <Python.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::guards {
using bytecode::Held;
using bytecode::ObjectRef;

class Lifetime {
 public:
  enum class Ends : uint8_t { with_first, with_last };   ///< of the objects
  /// `at_end` is called once, when they are gone; it may destroy this.
  Lifetime(Ends, std::function<void()> at_end);
  ~Lifetime();
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  /// It ends with this object. Nothing for one that allows no weak references.
  void depend_on(PyObject*);
  /// Lets go of what somebody else has, too, and ends with it. What nobody else has, and what allows no weak references, stays owned.
  void let_go(const std::vector<Held*>&);

 private:
  struct State;
  std::shared_ptr<State> state_;
  ObjectRef callback_;
  std::unordered_map<PyObject*, ObjectRef> weak_;
  ObjectRef weak_reference(PyObject*);
};

}  // namespace cutaway::guards
