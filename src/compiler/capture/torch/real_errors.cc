// Operators that raise only on real data: a matrix that has no inverse, an index out of range, a dtype without a kernel. While tracing they do not
// raise, so a block of the program's that handles the error has not run. When a graph raises, the frame is therefore run again, by CPython, from its beginning;
// that is right as long as the graph has changed nothing outside before. Where it would have, and a block may catch the error, the graph ends
// between the two (not where the user asked for one graph); random numbers are put back.
//
// And operators that raise while tracing, which they may do on fake tensors alone.
#include "compiler/capture/torch/real_errors.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

bool is_type_of_torch(PyTypeObject* t) {
  PyObject* module = t ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(t), "__module__") : nullptr;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  const bool is = text && std::string_view(text).starts_with("torch.");
  Py_XDECREF(module);
  PyErr_Clear();
  return is;
}

}  // namespace

// Whether a handler may end an exception: anything but passing it on. Every way through it is followed, but for exceptions of its own.
static bool may_handle(const Owners& t, const Frame& f, const bytecode::Handler& handler) {
  using bytecode::Op;
  const auto& code = f.code->instructions();
  const auto first = static_cast<size_t>(handler.target);
  std::vector<size_t> ways{first};
  std::vector<bool> seen(code.size());
  while (!ways.empty()) {
    size_t i = ways.back();
    ways.pop_back();
    for (; i < code.size() && !seen[i]; ++i) {
      seen[i] = true;
      switch (code[i].op) {
        case Op::RERAISE: case Op::RAISE_VARARGS: i = code.size() - 1; continue;
        case Op::CHECK_EXC_MATCH: case Op::CHECK_EG_MATCH: case Op::RETURN_VALUE: case Op::RETURN_CONST: case Op::YIELD_VALUE: return true;
        case Op::POP_EXCEPT:
          if (i + 1 >= code.size() || code[i + 1].op != Op::RERAISE) return true;
          continue;
        case Op::WITH_EXCEPT_START: {   // modes of torch let it pass
          const size_t depth = static_cast<size_t>(handler.depth);
          Value* exit = i <= first + 1 && depth >= 1 && depth <= f.stack.size() ? f.stack[depth - 1] : nullptr;
          if (!exit || exit->kind != Kind::method || !is_type_of_torch(t.values.type_of(body<Method>(exit).self))) return true;
          i = code.size() - 1;
          continue;
        }
        case Op::JUMP: i = static_cast<size_t>(code[i].target) - 1; continue;
        default:
          if (code[i].target >= 0) ways.push_back(static_cast<size_t>(code[i].target));
      }
    }
  }
  return false;
}

// Blocks that only pass the exception on do not count: `finally`, modes of torch, and what the compiler itself wraps around things.
bool RealErrors::in_block() {
  for (const Frame* f = frame_stack.innermost(); f; f = f->caller) {
    const auto& instructions = f->code->instructions();
    int handler = instructions[f->pc].handler;
    for (int around = 0; handler >= 0 && around < 64; ++around) {
      const bytecode::Handler& h = f->code->handlers()[static_cast<size_t>(handler)];
      if (may_handle(*this, *f, h)) return true;
      handler = instructions[static_cast<size_t>(h.target)].handler;
    }
  }
  return false;
}

// An error of torch on fake tensors may be one of fake tensors alone: the graph ends, and CPython runs the operator. Where there must be one graph (fullgraph)
// and no block of the program may handle the error the frame runs as it is, and the session looks whether eager raises as well; if not, the next capture ends here, too.
void RealErrors::end_before_doubted(const std::string& by) {
  const bool handled = in_block();
  if (!handled && !options.doubts_errors) return;
  const std::string what = exceptions.doubt_text(by, exceptions.raised());
  exceptions.drop_raised();
  stop("raises-while-traced", what + (handled ? ", inside a block that may handle it" : ""), handled ? "check the arguments before the call instead of handling what it raises" : "");
}

void RealErrors::watch_errors() { tensors.recorder().watch(!may_raise_in_block_ && in_block()); }

void RealErrors::note_raising(const std::string& name) {
  if (may_raise_in_block_ || !in_block()) return;
  if (first_change_ != SIZE_MAX && !options.fullgraph) stop("may-raise", name + " may raise on real data inside a try or with block, and the graph has changed tensors of the program before");
  may_raise_in_block_ = true;
}

bool RealErrors::note_assumption() {
  if (first_change_ != SIZE_MAX) return false;
  may_raise_in_block_ = true;   // whatever changes something from here on ends the graph
  return true;
}

void RealErrors::note_change(const std::string& name) {
  if (first_change_ != SIZE_MAX) return;
  if (may_raise_in_block_ && !options.fullgraph) stop("may-raise", name + " changes a tensor of the program, and an operator before it, or itself, may raise on real data inside a try or with block");
  first_change_ = tensors.node_count();
}

void RealErrors::note_first_change() {
  if (first_change_ == SIZE_MAX) first_change_ = tensors.node_count();
}

void RealErrors::note_errors(const std::string& name) {
  note_block();
  const trace::Recorder::Seen seen = tensors.recorder().seen();
  if (seen.may_raise) note_raising(name);
  if (!seen.writes && !seen.updates_statistics && !seen.draws) return;
  effects.note_effect_node();
  if (seen.draws) {
    torch_calls.note_random_node();
    first_random_ = std::min(first_random_, tensors.node_count());
  }
  if (first_change_ != SIZE_MAX) return;
  if (seen.updates_statistics) note_change(name);   // without a trace in any version
  if (!seen.writes) return;
  // A write to a tensor that the graph made itself shows nowhere.
  const auto& inputs = tensors.inputs();
  const bool outside = std::any_of(inputs.begin(), inputs.end(), [](Value* v) {
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    return fake.is_inference() || fake._version() > 0;
  });
  if (outside) note_change(name);
}

}  // namespace cutaway::capture
