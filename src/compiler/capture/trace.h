// One attempt to capture a frame: makes the owners of its state, connects them, and frees them. Whoever works with one includes that one's header, not this.
#pragma once
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

class Trace : public Owners {
 public:
  Trace(const frames::CaptureOptions&, const FrameView&, const bytecode::Code&, const Stop* stop, ClassData&);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  // The last is freed first: classes and torch's state before the values that they use.
  Values values_;
  Mappings mappings_;
  GuardLog guards_;
  Exceptions exceptions_;
  FrameStack frame_stack_;
  Endings endings_;
  Interpreter interpreter_;
  Namespaces namespaces_;
  Tracebacks tracebacks_;
  Attributes attributes_;
  Calls calls_;
  Operators operators_;
  Numbers numbers_;
  Subscripts subscripts_;
  Texts texts_;
  Iteration iteration_;
  Containers containers_;
  Builtins builtins_;
  Library library_;
  Leaves leaves_;
  RealErrors real_errors_;
  Effects effects_;
  TensorTrace tensors_;
  TorchCalls torch_calls_;
  Classes classes_;
};

}  // namespace cutaway::capture
