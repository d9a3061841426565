// What C code does with the result of a Python function, kept as data while that function is interpreted.
// If the graph breaks inside the function, the ending becomes a frame of its own, between the function and the instruction that called it.
#pragma once
#include <Python.h>

#include <deque>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

/// What C code does with the value that a Python function returns to it, as a function of _polyfills/endings.py: its `_rest()` stands for that function,
/// its arguments are `values`. After a break it is a frame of its own between the two; tracebacks do not show it.
struct Ending {
  const char* function = nullptr;
  std::vector<Value*> values;
};
/// Is the next call's result this instruction's result, perhaps after an ending?
struct Tail {
  bool is = false;
  const Ending* ending = nullptr;   ///< null: the value is used as it is
};

class Endings : protected Owners {
 public:
  explicit Endings(const Owners& owners) : Owners(owners) {}
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  Tail take_tail() { return std::exchange(tail_, Tail()); }
  void hand_on(const Tail& tail) { tail_ = tail; }
  const Tail& next_tail() const { return tail_; }
  void begin_tail() { tail_ = {true, nullptr}; }
  /// The next call's result goes through an ending before it is the instruction's. Does nothing where `outer` is not a tail, or has an ending already.
  void end_with(const Tail& outer, const char* function, std::vector<Value*> values);

 private:
  std::deque<Ending> endings_;
  Tail tail_;                                          ///< of the next call; whoever does something after that call takes it away first
};

}  // namespace cutaway::capture
