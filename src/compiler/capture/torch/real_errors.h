// Operators that raise only on real data. Decides where a graph must end, so that a run that raises can begin again by CPython.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler/capture/values/owners.h"

namespace cutaway::capture {

class RealErrors : protected Owners {
 public:
  explicit RealErrors(const Owners& owners) : Owners(owners) {}
  RealErrors(const RealErrors&) = delete;
  RealErrors& operator=(const RealErrors&) = delete;

  /// Called for every node before it ends. Ends the graph where an error of real data could not be undone inside a block that handles it.
  void note_errors(const std::string& name);
  void end_before_doubted(const std::string& by);      ///< ends the graph where a block may handle what was raised
  void watch_errors();                                 ///< called before the node begins
  void note_raising(const std::string& name);          ///< the node may raise on real data
  void note_change(const std::string& name);           ///< the node changes something that the program has
  bool in_block();                                     ///< an exception raised now may be caught by a try or with block of the captured code
  void note_block() { runs_in_block_ = runs_in_block_ || in_block(); }   ///< of every node; note_errors does it
  void note_first_change();
  /// The graph checks a condition that the trace takes for granted, and the frame runs again by CPython where it does not hold. False: too much has changed before.
  bool note_assumption();
  bool runs_in_block() const { return runs_in_block_; }
  bool may_raise_in_block() const { return may_raise_in_block_; }
  size_t first_change() const { return first_change_; }   ///< number of the first node that writes to a tensor of the program; SIZE_MAX: none
  size_t first_random() const { return first_random_; }   ///< number of the first node that draws random numbers

 private:
  bool runs_in_block_ = false, may_raise_in_block_ = false;
  size_t first_change_ = SIZE_MAX, first_random_ = SIZE_MAX;
};

}  // namespace cutaway::capture
