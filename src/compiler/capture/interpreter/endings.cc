// How a value that a Python function gives to C code becomes what the instruction gives: see Ending.
#include <stdexcept>

#include "compiler/bytecode/resume.h"
#include "compiler/capture/effects/plan_builder.h"
#include "compiler/capture/values/types.h"

namespace cutaway::capture {

void Trace::end_with(const Tail& outer, const char* function, std::vector<Value*> values) {
  tail_ = {};
  if (outer.is && !outer.ending) tail_ = {true, &endings_.emplace_back(Ending{function, std::move(values)})};
}

namespace {

/// The call of `_rest()`, which every ending has once.
int place_of_rest(const bytecode::Code& code) {
  bool asked = false;
  for (size_t i = 0; i < code.instructions().size(); ++i) {
    const bytecode::Instruction& in = code.instructions()[i];
    if (in.op == bytecode::Op::LOAD_GLOBAL) asked = PyUnicode_CompareWithASCIIString(code.name(in.arg), "_rest") == 0;
    if (in.op == bytecode::Op::CALL && asked) return static_cast<int>(i);
  }
  throw std::runtime_error(code.qualified_name() + " is no ending: it does not call _rest()");
}

}  // namespace

frames::OpenFrame PlanBuilder::ending_frame(const Ending& ending) {
  PyObject* function = ending_named(ending.function);
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  auto decoded = bytecode::decode_code(code);
  if (!decoded.ok()) throw std::runtime_error(decoded.error().text());
  frames::OpenFrame open;
  open.is_hidden = true;
  open.code = frames::ObjectRef::borrow(reinterpret_cast<PyObject*>(code));
  open.globals = frames::ObjectRef::borrow(ending_globals());
  open.instruction = place_of_rest(**decoded);
  const auto live = (*decoded)->live_before(open.instruction);
  for (int i = 0; i < (*decoded)->slot_count(); ++i) {
    const auto slot = static_cast<size_t>(i);
    open.locals.push_back(slot < ending.values.size() && live[slot] ? recipe(ending.values[slot]) : frames::kNull);
  }
  return open;
}

uint64_t Trace::step_now() const {
  const std::vector<Frame*> open = open_frames();
  return open.empty() ? outermost_->step : open.back()->step;
}

}  // namespace cutaway::capture
