#include "compiler/aot/specialize.h"

#include <c10/util/Exception.h>

namespace cutaway::aot {

Specialized::Specialized(ir::Graph captured, FunctionOptions options, size_t limit) : captured_(std::move(captured)), options_(std::move(options)), limit_(limit) {}

std::vector<std::shared_ptr<Function>> Specialized::functions() const {
  const std::lock_guard lock(mutex_);
  return functions_;
}

base::Result<std::shared_ptr<Function>> Specialized::find(const std::vector<c10::IValue>& inputs) {
  const auto known = functions();
  for (auto f = known.rbegin(); f != known.rend(); ++f)   // the newest first: callers mostly stay with one kind
    if ((*f)->accepts(inputs)) return *f;
  if (known.size() >= limit_)
    return base::Error{.what = "inputs of a new kind, after " + std::to_string(known.size()) + " others", .place = captured_.name, .because = "each kind of inputs is differentiated on its own", .hint = "pad the inputs to fewer sizes"};
  CUTAWAY_TRY_ASSIGN(std::shared_ptr<Function> made, Function::make(captured_, inputs, options_));
  const std::lock_guard lock(mutex_);
  functions_.push_back(made);
  return made;
}

std::vector<c10::IValue> Specialized::run(std::vector<c10::IValue>& inputs) {
  auto f = find(inputs);
  TORCH_CHECK_NOT_IMPLEMENTED(f.ok(), f.error().text());
  return (*f)->run(inputs);
}

}  // namespace cutaway::aot
