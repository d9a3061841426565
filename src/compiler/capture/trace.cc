#include "compiler/capture/trace.h"

namespace cutaway::capture {

Trace::Trace(const frames::CaptureOptions& options, const FrameView& view, const bytecode::Code& code, const Stop* stop, ClassData& class_data)
    : Owners{options, view, class_data, values_, mappings_, guards_, exceptions_, frame_stack_, endings_, interpreter_, namespaces_, tracebacks_, attributes_, classes_, calls_, operators_, numbers_, subscripts_, texts_, iteration_, containers_, builtins_, library_, leaves_, real_errors_, torch_calls_, tensors_, effects_},
      values_(*this), mappings_(*this), guards_(*this), exceptions_(*this), frame_stack_(*this), endings_(*this), interpreter_(*this, code, stop), namespaces_(*this), tracebacks_(*this), attributes_(*this), calls_(*this), operators_(*this), numbers_(*this), subscripts_(*this), texts_(*this), iteration_(*this), containers_(*this), builtins_(*this), library_(*this), leaves_(*this), real_errors_(*this), effects_(*this), tensors_(*this), torch_calls_(*this), classes_(*this) {
  (void)frame_stack.location();   // the recorder asks later, without the GIL
}

}  // namespace cutaway::capture
