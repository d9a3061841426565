// The instruction loop, and the generators that it suspends and resumes. Stops before the instruction that the last attempt could not capture.
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/bytecode/code.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

/// Where an attempt before this one found that the graph must end: an instruction by count of steps.
struct Stop { uint64_t step = 0; };
/// The place of the stop is reached; the trace is whole.
struct Stopped {};

class Interpreter : protected Owners {
 public:
  Interpreter(const Owners& owners, const bytecode::Code& code, const Stop* stop);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Interprets the outermost frame to its end or to the stop. Null when the program raises out of it.
  Value* run_outermost();
  bool has_stopped() const { return stopped_; }
  bool is_handling() const { return stopped_in_ ? stopped_handling_ : handled() != nullptr; }   ///< inside an except block
  Value* run_inlined(Frame* frame);
  Value* resume_generator(Value* generator, Value* sent, Value* thrown);   ///< null with raised() null: it is exhausted (result in last_return())
  Value* last_return() const { return last_return_; }
  void set_last_return(Value* v) { last_return_ = v; }
  bool has_open_blocks(Value* v);                      ///< a generator suspended where its end may run code
  Frame* stopped_in() const { return stopped_in_; }
  /// An earlier place to stop at, where a value that cannot be made again has not been made yet.
  const std::optional<uint64_t>& earlier_stop() const { return earlier_stop_; }
  void end_earlier(std::optional<uint64_t> step) { earlier_stop_ = step; }
  const std::vector<Value*>& generators() const { return generators_; }
  uint64_t steps() const { return steps_; }
  void count_from(uint64_t step) { steps_ = step; }
  uint64_t handling_since() const { return handling_since_; }
  /// Ends the generators that the program left inside try or with, as Python does when it frees them. False when that shows.
  bool close_generators();
  Value* handled() const { return handled_ ? handled_ : handled_outside_; }
  /// None, and a guard that the callers of the compiled function are inside no except block; a break where they are. `what` asks for it.
  Value* none_handled_outside(const std::string& what);

 private:
  Value* make_generator(Frame* frame);
  bool begin_with(Frame* frame, Value* manager, PyObject* exit_name, PyObject* enter_name, const char* protocol);   ///< pushes the bound exit and what was entered
  uint32_t end_delegation(Frame* frame, const bytecode::Instruction& send);   ///< with what the inner generator returned; returns the place to go on at
  Value* throw_into(Frame* frame, Value* thrown, bool is_started);
  Value* run(Frame* frame);
  int branch(Value* v);
  void drop(Value* v);                                 ///< it leaves the stack; breaks where the end of a generator from outside would run now

  const bytecode::Code& outer_code_;
  std::vector<Value*> generators_;
  Value* last_return_ = nullptr;
  const Stop* stop_ = nullptr;
  bool tells_instructions_ = false;                    ///< the log wants every instruction
  uint64_t steps_ = 0;
  std::optional<uint64_t> earlier_stop_;
  Frame* stopped_in_ = nullptr;
  bool stopped_handling_ = false;
  uint64_t handling_since_ = 0;                        ///< where the exception was raised that is being handled
  Value* handled_ = nullptr;                           ///< the exception that an except block is handling: of the generator that runs, or of the functions outside of any
  Value* handled_outside_ = nullptr;                   ///< the same of whoever resumed the generator that runs
  bool reraised_ = false;
  bool stopped_ = false;
};

}  // namespace cutaway::capture
