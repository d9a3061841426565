#include "compiler/capture/values/frame_stack.h"

#include <algorithm>

#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/session.h"
#include "compiler/frames/stack_names.h"

namespace cutaway::capture {

Frame* FrameStack::make_frame(Value* f) {
  Frame* frame = &frame_bodies_.emplace_back();
  frame->function = f;
  Function& fn = values.function(f);
  if (!fn.decoded) {
    auto decoded = bytecode::decode_code(fn.code);
    if (!decoded.ok()) throw frames::Skip{{.id = "unknown-bytecode", .what = decoded.error().what}};
    codes_.push_back(*decoded);
    fn.decoded = decoded->get();
  }
  frame->code = fn.decoded;
  frame->locals.assign(static_cast<size_t>(fn.decoded->slot_count()), nullptr);
  frame->stack.reserve(static_cast<size_t>(fn.code->co_stacksize) + 4);
  return frame;
}

namespace {
// Resume functions of a function have its name and place.
bool is_same_function(const Frame* a, const Frame* b) {
  return a->code->object()->co_firstlineno == b->code->object()->co_firstlineno && a->code->qualified_name() == b->code->qualified_name() && a->code->file() == b->code->file();
}
// A function that calls itself again and again would need other resume functions at each depth, each captured on its own: from the fifth call on Python makes the call.
bool is_deep_recursion(const std::vector<Frame*>& chain, size_t n) {
  constexpr long kMost = 4;
  return std::count_if(chain.begin(), chain.begin() + static_cast<long>(n), [&](const Frame* f) { return is_same_function(f, chain[n]); }) >= kMost;
}
}  // namespace

std::vector<Frame*> FrameStack::open_frames(Frame* innermost) const {
  std::vector<Frame*> chain;
  for (Frame* f = innermost; f; f = f->caller) chain.insert(chain.begin(), f);
  size_t n = 1;
  while (n < chain.size() && chain[n]->is_direct && (chain[n]->code->object()->co_flags & CO_OPTIMIZED) && !chain[n]->code->looks_at_its_frame() &&
         (body<Function>(chain[n]->function).globals_real == ending_globals() || frames::may_go_on(chain[n]->code->object())) && !is_deep_recursion(chain, n)) ++n;
  chain.resize(std::min(n, chain.size()));
  return chain;
}

uint64_t FrameStack::step_now() const {
  const std::vector<Frame*> open = open_frames();
  return open.empty() ? outermost_->step : open.back()->step;
}

Frame* FrameStack::innermost_of_user() const {
  Frame* f = innermost();
  while (f && f->caller && values.stands_for_c(f->function)) f = f->caller;
  return f;
}

std::vector<frames::BreakReason::Frame> FrameStack::user_stack() {
  std::vector<frames::BreakReason::Frame> all;
  for (Frame* f = innermost(); f; f = f->caller) {
    if (f->caller && values.stands_for_c(f->function)) continue;
    int line = 0;
    for (int i = static_cast<int>(f->pc); i >= 0 && !line; --i) line = f->code->instructions()[static_cast<size_t>(i)].line;
    all.insert(all.begin(), {f->code->file(), line, f->code->qualified_name(), {}});
  }
  return all;
}

// The recorder asks without the GIL: the first call, which asks Python, is that of Trace's constructor.
ir::Location FrameStack::location() {
  static const std::string torch_folder = [] {
    PyObject* const file = find_member("torch", "__file__");
    const std::string text = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : "";
    return text.substr(0, text.rfind('/') + 1);
  }();
  for (Frame* f = innermost(); f; f = f->caller) {
    if (f->caller && f->code->file().compare(0, torch_folder.size(), torch_folder) == 0) continue;
    int line = f->code->instructions()[f->pc].line;
    for (int i = static_cast<int>(f->pc); i >= 0 && !line; --i) line = f->code->instructions()[static_cast<size_t>(i)].line;
    return {f->code->file(), line, f->code->qualified_name(), {}};
  }
  return {};
}

// What a made function gets in ".stack", its last free variable, by the user's names. `function`: its name, where it is not the captured one.
void FrameStack::label_stack(Value* f, const char* function) {
  const Function& fn = body<Function>(f);
  const auto& names = frames::stack_names_of(fn.code);
  if (names.empty() || fn.closure.empty() || !fn.closure.back()->source) return;
  guards.sources().label(fn.closure.back()->source, std::string("the stack") + (function ? std::string(" of ") + function : "") + " after the break");
  SourceRef stack = guards.sources().of(fn.closure.back()->source, SourceKind::cell_contents);
  for (size_t i = 0; i < names.size(); ++i)
    guards.sources().label(guards.sources().of(stack, SourceKind::tuple_item, nullptr, static_cast<int64_t>(i)), function ? frames::name_in(names[i], function) : names[i].text);
}

}  // namespace cutaway::capture
