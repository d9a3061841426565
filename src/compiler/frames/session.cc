#include "compiler/frames/session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

#include "compiler/frames/break_code.h"
#include "compiler/frames/code_state.h"
#include "compiler/frames/collective.h"
#include "compiler/frames/dynamic_capture.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/python_frame.h"
#include "compiler/frames/report.h"
#include "compiler/frames/run_plan.h"
#include "compiler/frames/stance.h"
#include "compiler/guards/tensor_object.h"
#include "core/debug/log.h"
#include "core/debug/process.h"
#include "core/debug/settings.h"

namespace cutaway::frames {
namespace {

/// A compiled region of this thread.
struct Region {
  std::shared_ptr<Session> session;
  bool entered = false;   // its first frame was seen
};
thread_local Region* region = nullptr;
thread_local int compiling_depth = 0;   // captures and runs of captured code on this thread

struct Compiling {
  Compiling() { ++compiling_depth; }
  ~Compiling() { --compiling_depth; }
};

struct SkippedFiles { std::vector<std::string> skipped, but_not, hidden; };
SkippedFiles& skipped_files() {
  static auto* f = new SkippedFiles;
  return *f;
}
bool names(PyCodeObject* code, std::string_view wanted) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i), wanted.data()) == 0) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i)   // comprehensions
    if (PyObject* c = PyTuple_GET_ITEM(code->co_consts, i); PyCode_Check(c) && names(reinterpret_cast<PyCodeObject*>(c), wanted)) return true;
  return false;
}
bool reads_optimiser_state(PyCodeObject* code, std::string_view file, std::string_view name) {
  return (name.starts_with("_single_tensor_") || name.starts_with("_multi_tensor_")) && file.find("/torch/optim/") != std::string_view::npos && (names(code, "_get_value") || names(code, "item"));
}
// 0: captured, 1: not as a frame of its own, 2: nor is anything that it calls.
int is_skipped_file(PyCodeObject* code, CodeState& state) {
  if (state.skipped_file < 0) {
    const char* name = PyUnicode_AsUTF8(code->co_filename);
    if (!name) PyErr_Clear();
    const std::string_view file = name ? name : "";
    // The longest prefix decides: site-packages lies inside the standard library, torch inside site-packages, torch/nn/modules inside torch.
    const auto longest = [&](const std::vector<std::string>& prefixes) {
      size_t most = 0;
      for (const std::string& p : prefixes) if (file.starts_with(p)) most = std::max(most, p.size());
      return most;
    };
    state.skipped_file = longest(skipped_files().hidden) ? 2 : longest(skipped_files().skipped) > longest(skipped_files().but_not);
    // What builds an object where that could not be inlined: parameters are made, nothing worth a graph is computed.
    const std::string_view called = PyUnicode_AsUTF8(code->co_name);
    if (reads_optimiser_state(code, file, called)) state.skipped_file = 2;   // a number for each parameter: hundreds of breaks
    if (!state.skipped_file && (called == "__init__" || called == "__setattr__" || called == "reset_parameters")) {
      state.skipped_file = 1;
      state.is_builder = !longest(skipped_files().skipped);
    }
  }
  return state.skipped_file;
}

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string text_of(PyObject* o) {
  const char* t = PyUnicode_AsUTF8(o);
  if (!t) { PyErr_Clear(); return "?"; }
  return t;
}

/// What a look for an entry ends with: one to run, "let CPython run it" (null, no exception), or an exception.
struct Found {
  std::shared_ptr<Entry> entry;
  bool raised = false;
  bool runs_hidden = false;   ///< CPython runs the frame, and nothing inside it is captured
};

std::shared_ptr<Entry> find_entry(CodeState& state, const Session* session, const FrameView& frame, const guards::GlobalState& now, std::vector<ObjectRef>& values) {
  auto& list = state.entries;
  for (size_t i = 0; i < list.size(); ++i) {
    std::shared_ptr<Entry> entry = list[i];   // a check may free objects, and with them entries
    if (entry->session.get() != session || !entry->guards->check(frame, now, values)) continue;
    if (const auto at = std::ranges::find(list, entry); at != list.end()) std::rotate(list.begin(), at, std::next(at));
    return entry;
  }
  return nullptr;
}

void remember_size(CodeState& state, const std::string& source, int dim) {
  for (const DynamicSize& d : state.dynamic)
    if (d.source == source && d.dim == dim) return;
  state.dynamic.push_back({source, dim});
}

// Numbers that modules keep are settings: a model in which they differ from layer to layer is compiled for each. Others may be counts.
bool is_setting(const guards::Source* s, const FrameView& frame) {
  static PyObject* module = nullptr;   // no initializer that calls Python: a thread may lose the GIL inside, and another one would wait with it
  if (!module) {
    ObjectRef nn = ObjectRef::steal(PyImport_ImportModule("torch.nn"));
    module = nn ? PyObject_GetAttrString(nn.get(), "Module") : nullptr;
    if (!module) PyErr_Clear();
  }
  for (; s; s = s->base) {
    if (s->kind == guards::SourceKind::type_attr || s->kind == guards::SourceKind::function_defaults || s->kind == guards::SourceKind::function_kwdefaults) return true;
    if (s->kind != guards::SourceKind::attr && s->kind != guards::SourceKind::instance_dict) continue;
    const ObjectRef owner = guards::read_source(*s->base, frame);
    if (!owner || PyModule_Check(owner.get()) || (module && PyType_IsSubtype(Py_TYPE(owner.get()), reinterpret_cast<PyTypeObject*>(module)))) return true;
  }
  return false;
}

/// Why the entries that there are do not fit; the most recent first. Sizes that changed are remembered.
std::string explain_misses(CodeState& state, const Session* session, const FrameView& frame, const guards::GlobalState& now) {
  std::string out;
  for (const auto& e : std::vector(state.entries)) {   // reading sources may free objects, and with them entries
    if (e->session.get() != session) continue;
    const guards::Mismatch m = e->guards->explain(frame, now);
    for (const auto& c : e->guards->changed_sizes(frame))
      if (c.dim >= 0 || c.is_float || !is_setting(c.source, frame)) remember_size(state, c.source->identity() + c.item, c.dim);
    if (!m.text.empty() && out.find(m.text) == std::string::npos) out += (out.empty() ? "" : "; ") + m.text;
  }
  return out;
}

bool is_error(const BreakReason& reason) { return reason.raises ? *reason.raises : breaks_raise_now(); }

// Stance::eager_first. True for the first call of a function; sizes in which the second one differs are symbols from the beginning.
bool is_first_call(CodeState& state, const FrameView& frame) {
  const bool is_first = !std::exchange(state.is_met, true);
  std::vector<std::pair<std::string, std::vector<int64_t>>> sizes;
  for (int i = 0; i < frame.slot_count; ++i)
    if (frame.slots[i] && guards::is_tensor(frame.slots[i])) sizes.emplace_back(text_of(PyTuple_GET_ITEM(frame.code->co_localsplusnames, i)), guards::describe_tensor(frame.slots[i]).sizes);
  if (!is_first)
    for (const auto& [name, now] : sizes)
      for (const auto& [known, before] : state.first_sizes)
        for (size_t d = 0; known == name && before.size() == now.size() && d < now.size(); ++d)
          if (before[d] != now[d]) remember_size(state, name, static_cast<int>(d));
  state.first_sizes = is_first ? std::move(sizes) : decltype(sizes)();
  return is_first;
}

/// The reason that a result of capture has, whatever it is; null: none.
BreakReason* reason_of(CaptureResult& result) {
  if (auto* skip = std::get_if<Skip>(&result)) return &skip->reason;
  if (auto* error = std::get_if<InternalError>(&result)) return &error->where;
  auto* plan = std::get_if<Plan>(&result);
  if (auto* b = plan ? std::get_if<Break>(&plan->ending) : nullptr) return &b->reason;
  if (auto* eager = plan ? std::get_if<RunEagerly>(&plan->ending) : nullptr) return &eager->reason;
  return nullptr;
}

/// The right to capture. One thread captures at a time: while it imports or calls torch others run, and they need not wait, since eager is always right.
/// A function that calls itself while it is captured does not get it either.
class CaptureTurn {
 public:
  explicit CaptureTurn(CodeState& state) {
    PyThreadState* me = PyThreadState_Get();
    if (captures_ && captures_ != me) return;
    if (std::exchange(state.compiling, true)) return;
    state_ = &state;
    before_ = std::exchange(captures_, me);
  }
  ~CaptureTurn() {
    if (!state_) return;
    state_->compiling = false;
    captures_ = before_;
  }
  CaptureTurn(const CaptureTurn&) = delete;
  CaptureTurn& operator=(const CaptureTurn&) = delete;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  static inline PyThreadState* captures_ = nullptr;
  CodeState* state_ = nullptr;
  PyThreadState* before_ = nullptr;
};

/// Makes an entry for a frame that has none, in named steps; run() shows their order. What came of it is told once.
class FrameCompilation {
 public:
  FrameCompilation(const std::shared_ptr<Session>& session, CodeState& state, const FrameView& frame, const guards::GlobalState& now, bool is_first);
  Found run();

 private:
  // Steps that may end it before anything is captured.
  std::optional<Found> refuse_above_limit();
  std::optional<Found> refuse_under_modes();
  std::optional<Found> refuse_by_stance();
  // Capture, with the backend called inside.
  void set_options();
  CaptureResult capture(const bytecode::Code& code);
  std::shared_ptr<GraphFunction> compile_graph(CapturedGraph graph);
  // What becomes of its result.
  Found tell_raised(BreakReason reason);   ///< a Python exception is set: the caller's
  Found report_own_error(const InternalError& error);
  Found skip(const BreakReason& reason);
  Found keep(Plan made, const bytecode::Code& code);
  Found give_up(const BreakReason& reason, bool must_capture);
  std::string leave(const BreakReason& reason, bool is_internal, const std::string& instruction) { return leave_record(*session_, FailedFrame{frame_, options_, reason, calls_, is_internal, instruction}); }
  std::string place() const { return record_.function + " (" + record_.file + ":" + std::to_string(record_.line) + ")"; }
  bool must_capture() const { return session_->fullgraph && is_first_; }

  const std::shared_ptr<Session>& session_;
  CodeState& state_;
  const FrameView& frame_;
  const guards::GlobalState& now_;
  const bool is_first_;
  int64_t mine_ = 0;                 // entries of this session
  CompileRecord record_;
  CaptureOptions options_;
  CallLog calls_;
  std::string graph_place_;          // the graph's folder in the debug directory
  std::string static_because_;       // why sizes stay numbers
  std::vector<DynamicSize> agreed_;  // sizes that ranks agreed on
  std::optional<base::Error> alone_; // why this rank could not agree with the others
};

FrameCompilation::FrameCompilation(const std::shared_ptr<Session>& session, CodeState& state, const FrameView& frame, const guards::GlobalState& now, bool is_first)
    : session_(session), state_(state), frame_(frame), now_(now), is_first_(is_first) {
  record_.function = text_of(frame.code->co_qualname);
  record_.file = text_of(frame.code->co_filename);
  record_.line = frame.code->co_firstlineno;
  record_.is_resume = state.root != nullptr;
  mine_ = std::count_if(state.entries.begin(), state.entries.end(), [&](const auto& e) { return e->session == session; });
  if (mine_) record_.recompile_reason = explain_misses(state, session.get(), frame, now);
  if (mine_ && record_.recompile_reason.empty()) record_.recompile_reason = "unknown";
}

Found FrameCompilation::run() {
  if (auto ended = refuse_above_limit()) return *ended;
  if (auto ended = refuse_under_modes()) return *ended;
  if (auto ended = refuse_by_stance()) return *ended;
  auto decoded = bytecode::decode_code(frame_.code);
  if (!decoded.ok()) return {};
  const CaptureTurn turn(state_);
  if (!turn) return {};
  const ObjectRef keep_function = ObjectRef::borrow(reinterpret_cast<PyObject*>(frame_.function));

  HookScope hidden(HookScope::Frames::hidden);
  struct OutsideOfRegions { Region* before = std::exchange(region, nullptr); ~OutsideOfRegions() { region = before; } } const outside;
  Compiling compiling;
  set_options();
  if (debug::wants(options_.sink, "bytecode", debug::Level::info)) debug::say(options_.sink, "bytecode", debug::Level::info, record_.function + ", original:\n" + (*decoded)->text());
  struct Logging { CallLog* before; explicit Logging(CallLog* l) : before(std::exchange(call_log(), l)) {} ~Logging() { call_log() = before; } } const logging(&calls_);
  CaptureResult result = capture(**decoded);

  for (const DynamicSize& d : agreed_) remember_size(state_, d.source, d.dim);
  if (alone_) {   // to go on alone would be another graph than the others run
    if (!PyErr_Occurred()) raise("CollectiveError", alone_->text());
    return tell_raised({"collective", alone_->what, alone_->hint, {}});
  }
  if (!static_because_.empty()) debug::say(options_.sink, "shapes", debug::Level::info, record_.function + ": sizes stay numbers: " + static_because_);
  if (BreakReason* reason = reason_of(result)) add_source_lines(*reason);
  if (std::holds_alternative<BackendRaised>(result)) return tell_raised({"backend-raised", raised_text(), "", {}});
  if (PyErr_Occurred()) PyErr_Clear();   // capture answers by value; an exception that it left is not the user's
  if (const auto* error = std::get_if<InternalError>(&result)) return report_own_error(*error);
  if (const auto* skipped = std::get_if<Skip>(&result)) {
    if (skipped->reason.id == "uninitialized-parameter") {   // of this call alone, and of all that it calls
      record_.outcome = CompileRecord::Outcome::skipped;
      record_.reason = skipped->reason;
      tell(record_);
      return {.runs_hidden = true};
    }
    state_.skipped = !is_error(skipped->reason);   // an error is one at every call
    state_.skip_reason = skipped->reason;
    return skip(skipped->reason);
  }
  return keep(std::get<Plan>(std::move(result)), **decoded);
}

std::optional<Found> FrameCompilation::refuse_above_limit() {
  if (mine_ < session_->observe_limit.value_or(settings().cache_size_limit)) return std::nullopt;
  record_.outcome = CompileRecord::Outcome::limit;
  if (session_->observe_limit) {
    tell(record_);
    return Found();
  }
  const std::string text = place() + " was compiled " + std::to_string(mine_) + " times, the limit (cache_size_limit)";
  const std::string why = "\n   last reason: " + record_.recompile_reason;
  if (session_->fullgraph) {
    raise("RecompileLimitExceeded", text + ", and this call fits none of them" + why);
    return Found{nullptr, true};
  }
  if (!std::exchange(state_.limit_said, true)) {
    tell(record_);
    warn("recompiles", text + "; a call that fits none of them runs in Python, and what it calls is still compiled" + why);
  }
  return Found();
}

// A mode is the user's code: it would see what the capture does, and not what the graph does.
std::optional<Found> FrameCompilation::refuse_under_modes() {
  const bool has_function_mode = std::any_of(now_.torch_function_modes.begin(), now_.torch_function_modes.end(), [](const auto& m) { return m.device < 0; });
  if (!now_.dispatch_modes && !has_function_mode && !now_.functorch) return std::nullopt;
  record_.outcome = CompileRecord::Outcome::skipped;
  if (!must_capture()) return Found();
  const char* what = now_.dispatch_modes ? "TorchDispatchMode" : has_function_mode ? "TorchFunctionMode" : "transform of torch.func";
  const BreakReason reason{"torch-mode", std::string("a ") + what + " is active, which must see every call once: the function runs eagerly", "call the function outside of it", {}};
  record_.reason = reason;
  tell(record_);
  raise("Unsupported", place() + ": " + reason_text(reason), &reason);
  return Found{nullptr, true};
}

std::optional<Found> FrameCompilation::refuse_by_stance() {
  if (current_stance().kind != Stance::Kind::fail_on_recompile) return std::nullopt;
  raise("RecompileNotAllowed", place() + " would have to be compiled" + (mine_ ? " again" : "") + ", and the stance is \"fail_on_recompile\"" + (mine_ ? "\n   because: " + record_.recompile_reason : ""));
  return Found{nullptr, true};
}

void FrameCompilation::set_options() {
  options_.fullgraph = session_->fullgraph;
  options_.runs_python = session_->backend && session_->backend.get() != Py_None;   // None: one of C++
  options_.all_dynamic = session_->dynamic.value_or(false);
  if (session_->dynamic.value_or(true) && settings().automatic_dynamic) options_.dynamic = state_.dynamic;
  options_.doubts_errors = state_.doubts_errors || !session_->fullgraph;   // one graph cannot end before it: the frame runs eagerly, and is looked at
  options_.sink = debug::process_sink();
  options_.verbose = settings().verbose;
}

std::shared_ptr<GraphFunction> FrameCompilation::compile_graph(CapturedGraph graph) {
  static int64_t number = 0;
  graph.name = "__compiled_fn_" + std::to_string(number++);
  graph_place_ = graph.name;
  record_.graph_name = graph.name;
  const double start = now_seconds();
  debug::StepPhase step(options_.sink, debug::Step::backend, record_.function);
  auto compiled = session_->compile(std::move(graph));
  if (!compiled) step.fail(raised_text());
  record_.backend_seconds += now_seconds() - start;
  return compiled;
}

CaptureResult FrameCompilation::capture(const bytecode::Code& code) {
  const double began = now_seconds();
  graph_place_ = record_.function;
  const Compile compile = [this](CapturedGraph graph) { return compile_graph(std::move(graph)); };
  auto ranks = asked_collective();
  if (!ranks.ok()) alone_ = ranks.error();
  CaptureResult result = Skip{};
  {
    debug::StepPhase step(options_.sink, debug::Step::capture, record_.function);
    try {
      if (ranks.ok() && *ranks) {
        auto together = capture_together(**ranks, *session_, frame_, code, options_, compile, state_.collectives++, agreed_, static_because_);
        if (together.ok()) result = std::move(together).value();
        else alone_ = together.error();
      } else if (!alone_) {
        result = capture_sizes(*session_, frame_, code, options_, compile, static_because_);
      }
      if (const auto* error = std::get_if<InternalError>(&result)) step.fail(error->error.text());
    } catch (const std::exception& e) {
      step.fail(e.what());
      result = InternalError{base::Error{.what = e.what(), .place = "capture"}, {}};
    }
  }
  record_.seconds = now_seconds() - began;
  return result;
}

Found FrameCompilation::tell_raised(BreakReason reason) {
  record_.outcome = CompileRecord::Outcome::failed;
  record_.reason = std::move(reason);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  tell(record_);
  PyErr_Restore(type, value, trace);
  return {nullptr, true};
}

Found FrameCompilation::report_own_error(const InternalError& error) {
  record_.outcome = CompileRecord::Outcome::failed;
  state_.skipped = true;
  const BreakReason reason = internal_reason(error);
  state_.skip_reason = reason;
  const bool raises = is_strict() || session_->fullgraph;
  const bool said = std::exchange(state_.error_said, true);
  const std::string kept = !settings().record_errors || said ? std::string() : leave(reason, true, error.instruction);
  const std::string text = internal_text(place(), error, kept, raises);
  record_.reason = reason;
  tell(record_);
  if (raises) {
    raise("InternalError", text, &reason);
    return {nullptr, true};
  }
  if (!said) warn("capture", text);
  return {};
}

Found FrameCompilation::skip(const BreakReason& reason) {
  record_.outcome = CompileRecord::Outcome::skipped;
  return give_up(reason, must_capture());
}

Found FrameCompilation::give_up(const BreakReason& reason, bool must_capture) {
  record_.reason = reason;
  tell(record_);
  if (!must_capture && !is_error(reason)) return {};
  const std::string kept = settings().replay_record_enabled ? leave(reason, false, "") : std::string();
  raise("Unsupported", place() + ": " + reason_text(reason) + kept, &reason);
  return {nullptr, true};
}

Found FrameCompilation::keep(Plan made, const bytecode::Code& code) {
  auto entry = std::make_shared<Entry>();
  entry->session = session_;
  entry->plan = std::move(made);
  Plan& plan = entry->plan;
  if (auto* b = std::get_if<Break>(&plan.ending)) {
    if (session_->fullgraph || is_error(b->reason)) {
      record_.outcome = CompileRecord::Outcome::skipped;
      return give_up(b->reason, true);
    }
    if (auto prepared = prepare_break(*entry, frame_.code); !prepared.ok()) {
      BreakReason reason = b->reason;
      reason.cause = std::make_shared<const BreakReason>(b->reason);
      reason.id = "cannot-be-resumed";
      reason.what = "the function cannot go on after the end of the graph: " + prepared.error().what;
      state_.skipped = true;
      state_.skip_reason = reason;
      return skip(reason);
    }
    record_.reason = b->reason;
  } else if (const auto* eager = std::get_if<RunEagerly>(&plan.ending)) {
    record_.reason = eager->reason;
  }
  debug::keep_artifact(options_.sink, "capture", graph_place_, "bytecode.txt", [&] { return "original\n" + code.text() + "\ncompiled\n" + plan_text(plan); });
  for (const Recipe& r : plan.recipes)   // what a plan reads must be there
    if (r.kind == Recipe::Kind::source) plan.guards.push_back({.source = r.source, .kind = guards::GuardKind::exists});
  guards::drop_implied(plan.guards);
  let_go(state_, *entry);
  entry->guards = std::make_unique<guards::GuardTree>(std::move(plan.guards), now_, plan.inputs);
  record_.plan = &plan;
  if (somebody_listens() || debug::wants(options_.sink, "guards", debug::Level::info) || (options_.sink && options_.sink->keeps_file("guards.txt")))
    for (const guards::Guard& g : entry->guards->guards()) record_.guards.push_back(g.text());
  debug::keep_artifact(options_.sink, "capture", graph_place_, "guards.txt", [&] {
    std::string all;
    for (const std::string& g : record_.guards) all += g + "\n";
    return all;
  });
  if (!record_.reason.id.empty()) debug::keep_artifact(options_.sink, "capture", graph_place_, "breaks.txt", [&] { return reason_text(record_.reason) + "\n"; });
  state_.entries.insert(state_.entries.begin(), entry);
  tell(record_);
  return {entry, false};
}

// Not inlined: the frames that find an entry should not pay for it.
[[gnu::noinline]] Found compile_frame(const std::shared_ptr<Session>& session, CodeState& state, const FrameView& frame, const guards::GlobalState& now, bool is_first) {
  return FrameCompilation(session, state, frame, now, is_first).run();
}

// As the code of a made function does first: a generator that the program leaves ends then, not when the frame is gone.
void forget_stack(PyFunctionObject* made) {
  const Py_ssize_t n = made->func_closure ? PyTuple_GET_SIZE(made->func_closure) : 0;
  if (n > 0) PyCell_Set(PyTuple_GET_ITEM(made->func_closure, n - 1), nullptr);
}

// A frame that goes on and first calls that of its callee: whether the callee's variables have objects that must end with the callee, before this frame goes on.
bool callee_ends_objects(PyFunctionObject* made) {
  const auto stack_of = [](PyFunctionObject* f) {
    const Py_ssize_t n = f->func_closure ? PyTuple_GET_SIZE(f->func_closure) : 0;
    PyObject* stack = n > 0 ? PyCell_GET(PyTuple_GET_ITEM(f->func_closure, n - 1)) : nullptr;
    return stack && PyTuple_Check(stack) ? stack : nullptr;
  };
  const auto any_ends = [](PyObject* tuple, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i)
      if (PyObject* v = PyTuple_GET_ITEM(tuple, i); !PyGen_CheckExact(v) && acts_when_freed(v)) return true;
    return false;
  };
  PyObject* stack = stack_of(made);   // the top first: arguments, then the function
  for (Py_ssize_t i = 0; stack && i < PyTuple_GET_SIZE(stack); ++i) {
    if (!PyFunction_Check(PyTuple_GET_ITEM(stack, i))) continue;
    auto* callee = reinterpret_cast<PyFunctionObject*>(PyTuple_GET_ITEM(stack, i));
    auto* code = reinterpret_cast<PyCodeObject*>(callee->func_code);
    if (code->co_argcount != i || !state_of(code).root) continue;
    if (any_ends(stack, i)) return true;
    if (PyObject* inner = stack_of(callee); inner && any_ends(inner, PyTuple_GET_SIZE(inner))) return true;
    return state_of(code).call >= 0 && callee_ends_objects(callee);
  }
  return false;
}

/// The line at which the frame that has just ended raised what is set; 0 when it is not known.
int raised_at_line(PyCodeObject* code) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  int line = 0;
  if (trace && PyTraceBack_Check(trace)) {
    auto* first = reinterpret_cast<PyTracebackObject*>(trace);
    PyCodeObject* of = PyFrame_GetCode(first->tb_frame);
    if (of == code) line = PyCode_Addr2Line(of, first->tb_lasti);
    Py_DECREF(of);
  }
  PyErr_Restore(type, value, trace);
  return line;
}

/// Is what is set an error of ours? It is put aside meanwhile: an import may clear it.
bool raised_by_us() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const ObjectRef base = exception_class("CompileError");
  const bool is_ours = base && PyErr_GivenExceptionMatches(type, base.get());
  PyErr_Restore(type, value, trace);
  return is_ours;
}

/// A plan says that the program raises, and CPython has run the frame: does it? Gives the result, or an error of ours.
PyObject* check_belief(const std::shared_ptr<Session>& session, const std::shared_ptr<Entry>& entry, PyCodeObject* code, PyObject* result) {
  const auto& believed = std::get<RunEagerly>(entry->plan.ending);
  const BreakReason::Frame* outermost = believed.reason.stack.empty() ? nullptr : &believed.reason.stack.front();
  std::string instead;
  if (result) {
    instead = "returns";
  } else {
    // An error of real data may come first, at another line. Ours, from a frame inside this one, says what is wrong already.
    PyObject* type = PyErr_Occurred();
    const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
    if (believed.exception == name || !PyErr_GivenExceptionMatches(type, PyExc_Exception) || !outermost || raised_at_line(code) != outermost->line || raised_by_us()) return result;
    instead = std::string("raises ") + name;
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  CodeState& state = state_of(code);
  std::erase(state.entries, entry);
  CompileRecord record;
  record.function = text_of(code->co_qualname);
  record.file = text_of(code->co_filename);
  record.line = code->co_firstlineno;
  record.is_resume = state.root != nullptr;
  record.outcome = CompileRecord::Outcome::skipped;
  record.reason = believed.reason;
  record.reason.what += ", but eager " + instead;
  const bool by_torch = believed.reason.id == "raises-while-traced";
  if (!by_torch) record.reason.id = "internal-error";
  // The next capture ends the graph where torch raises; if it is still wrong, or the error was our own, eager is right.
  if (std::exchange(state.doubts_errors, true) || !by_torch) {
    state.skipped = true;
    state.skip_reason = record.reason;
  }
  tell(record);
  const std::string text = record.function + " (" + record.file + ":" + std::to_string(record.line) + "): " + reason_text(record.reason);
  const bool must_capture = session->fullgraph || breaks_raise_now();
  if (is_strict() || (result && must_capture)) {
    raise(by_torch ? "Unsupported" : "InternalError", text, &record.reason);
    Py_XDECREF(result);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return nullptr;
  }
  if (!by_torch && !std::exchange(state.error_said, true)) warn("capture", text);
  PyErr_Restore(type, value, trace);
  return result;
}

/// The frame, and then whatever goes on behind its breaks, in a loop: a break in a loop of the user's does not deepen our stack.
PyObject* drive(Region& r, CodeState* state, const FrameView& first, ResultCheck& check) {
  FrameView frame = first;
  bool is_first = !r.entered, is_original = true;
  r.entered = true;
  Continuation held;                     // keeps the function and arguments of a continuation alive
  std::vector<PyObject*> arguments;
  const std::shared_ptr<Session> session = r.session;
  std::vector<ObjectRef> values;
  for (;;) {
    const auto run_natively = [&] {
      if (is_original) return kRunIt;
      run_next_natively(frame.code);
      return PyObject_Vectorcall(held.function.get(), arguments.data(), arguments.size(), nullptr);
    };
    if (state->call >= 0 && callee_ends_objects(frame.function)) return run_natively();
    using Kind = Stance::Kind;
    const Kind stance = current_stance().kind;
    if (stance == Kind::force_eager) return run_natively();
    Found found;
    const guards::GlobalState now = guards::GlobalState::now();
    if (!state->skipped) {
      found.entry = find_entry(*state, session.get(), frame, now, values);
      if (!found.entry && (stance == Kind::eager_on_recompile || (stance == Kind::eager_first && is_first_call(*state, frame)))) return run_natively();
      if (!found.entry) {
        found = compile_frame(session, *state, frame, now, is_first);
        if (found.raised) return nullptr;
        if (found.entry && !found.entry->guards->check(frame, now, values)) {
          // Capture runs code of torch's, which may fill in what a guard was made for before: a module that finds its members when asked, a cache. The second time it is there.
          std::erase(state->entries, found.entry);
          found = compile_frame(session, *state, frame, now, is_first);
          if (found.raised) return nullptr;
        }
        if (found.entry && !found.entry->guards->check(frame, now, values)) {
          // A guard that does not hold for the call it was made from is our mistake; eager is right.
          const std::string why = found.entry->guards->explain(frame, now).text;
          std::erase(state->entries, found.entry);
          state->skipped = true;
          state->skip_reason = {"internal-error", "a guard of cutaway's does not hold for the call it was made from: " + why, "", {}};
          if (is_strict() || session->fullgraph) { raise("InternalError", state->skip_reason.what); return nullptr; }
          warn("capture", state->skip_reason.what);
          found.entry = nullptr;
        }
      }
    } else if (session->fullgraph && is_first && stance != Kind::eager_on_recompile) {
      raise(state->skip_reason.id == "internal-error" ? "InternalError" : "Unsupported", text_of(frame.code->co_qualname) + ": " + reason_text(state->skip_reason), &state->skip_reason);
      return nullptr;
    }
    if (found.runs_hidden && is_original) return kRunItHidden;
    if (!found.entry || !may_run_now(found.entry->plan, values)) return run_natively();
    if (std::holds_alternative<RunEagerly>(found.entry->plan.ending)) {
      check = [session, entry = found.entry, code = ObjectRef::borrow(reinterpret_cast<PyObject*>(frame.code))](PyObject* result) {
        return check_belief(session, entry, reinterpret_cast<PyCodeObject*>(code.get()), result);
      };
      return is_original ? kRunItChecked : check(run_natively());
    }
    const Entry& entry = *found.entry;
    if (entry.users && !state_of(first.code).root) entry.users->depend_on(reinterpret_cast<PyObject*>(first.function));
    Made made;
    {
      Compiling compiling;
      if (!run_plan(entry.plan, frame, values, made)) {
        if (!made.run_again) return nullptr;
        debug::say(debug::process_sink(), "graph", debug::Level::info, text_of(frame.code->co_qualname) + ": an operator raised (" + raised_text() + "); the frame runs again by CPython");
        PyErr_Clear();
        return run_natively();
      }
    }
    values.clear();
    if (state->root) forget_stack(frame.function);
    if (const auto* ret = std::get_if<ReturnValue>(&entry.plan.ending)) return made.objects[ret->value].release();
    if (const auto* raised = std::get_if<RaiseValue>(&entry.plan.ending)) {
      PyObject* exception = made.objects[raised->exception].get();
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
      return nullptr;
    }
    Continuation next = cross_break(entry, frame, made.objects);
    if (next.answer) return next.answer.release();
    if (!next.function) return nullptr;
    held = std::move(next);
    arguments.clear();
    for (const ObjectRef& a : held.arguments) arguments.push_back(a.get());
    frame.function = reinterpret_cast<PyFunctionObject*>(held.function.get());
    frame.code = reinterpret_cast<PyCodeObject*>(frame.function->func_code);
    frame.slots = arguments.data();
    frame.slot_count = static_cast<int>(arguments.size());
    state = &state_of(frame.code);
    is_original = is_first = false;
  }
}

PyObject* handle_frame(const FrameView& frame, ResultCheck& check) {
  Region* r = region;
  if (!r) return kRunIt;
  CodeState& state = state_of(frame.code);
  if (state.is_stub) return kRunIt;
  if (const TorchDisable off = torch_disable_of(frame.function); off != TorchDisable::no) {
    if (off == TorchDisable::all_below) return kRunItHidden;
    // torch wraps the function: the frame that was meant is the next one.
    PyObject* inner = PyDict_GetItemString(frame.function->func_dict, "_torchdynamo_orig_callable");
    if (inner && PyFunction_Check(inner)) run_next_natively(reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(inner)->func_code));
    r->entered = true;
    return kRunIt;
  }
  if (r->entered) {
    if (is_skipped_file(frame.code, state) == 2) return kRunItHidden;
    if (state.skipped || state.skipped_file) return kRunIt;
  } else if (state.skipped && !r->session->fullgraph) {
    r->entered = true;
    return kRunIt;
  }
  if (settings().suppress) return kRunIt;
  if (!settings().only_function.empty() && text_of(frame.code->co_name) != settings().only_function) { r->entered = true; return kRunIt; }
  try {
    return drive(*r, &state, frame, check);
  } catch (const std::exception& e) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "cutaway: %s", e.what());
    return nullptr;
  }
}

}  // namespace

Settings& settings() {
  static Settings s;
  return s;
}

bool is_strict() {
  if (settings().strict) return *settings().strict;
  const auto value = debug::process_environment("CUTAWAY_STRICT");
  return value && !value->empty() && *value != "0";
}

bool start() { return set_frame_handler(&handle_frame); }

namespace {
// A call of these makes an object whose frame runs later, when no region is active: said once. False with an exception set: it had to be captured.
bool tell_suspended(const Session& session, PyCodeObject* code) {
  CodeState& state = state_of(code);
  const bool is_new = !std::exchange(state.skipped, true);
  if (is_new)
    state.skip_reason = code->co_flags & CO_GENERATOR ? BreakReason{"generator-function", "a generator is not captured as a whole: its frame runs in pieces, when it is asked for items", "compile what is called inside it", {}}
                                                       : BreakReason{"coroutine", "a coroutine or asynchronous generator is not captured", "compile what is called inside it", {}};
  CompileRecord record;
  record.function = text_of(code->co_qualname);
  record.file = text_of(code->co_filename);
  record.line = code->co_firstlineno;
  record.outcome = CompileRecord::Outcome::skipped;
  record.reason = state.skip_reason;
  if (is_new) tell(record);
  if (!session.fullgraph) return true;
  raise("Unsupported", record.function + " (" + record.file + ":" + std::to_string(record.line) + "): " + reason_text(record.reason), &record.reason);
  return false;
}
}  // namespace

PyObject* call_compiled(const std::shared_ptr<Session>& own, PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Stance stance = current_stance();
  if (stance.kind == Stance::Kind::force_eager) {
    Disabled off;
    HookScope hidden(HookScope::Frames::hidden);
    return PyObject_Vectorcall(callable, args, nargsf, kwnames);
  }
  std::shared_ptr<Session> session = own;
  if (stance.backend && own->with_backend) {
    if (own->forced.first != stance.backend) {
      std::shared_ptr<Session> made = own->with_backend(stance.backend.get());
      if (!made) return nullptr;
      own->forced = {stance.backend, std::move(made)};
    }
    session = own->forced.second;
  }
  if (PyFunction_Check(callable)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) && !tell_suspended(*session, code)) return nullptr;
  }
  Region mine{session, false};
  HookScope shown(HookScope::Frames::shown);
  Region* before = std::exchange(region, &mine);
  PyObject* result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
  region = before;
  return result;
}

void reset() {
  forget_records();
  forget_all_entries();
  forget_what_was_told();
}

bool is_compiling() { return compiling_depth > 0; }

Disabled::Disabled() : before_(std::exchange(region, nullptr)) {}
Disabled::~Disabled() { region = static_cast<Region*>(before_); }

std::vector<std::vector<std::string>> entry_guards(PyCodeObject* code) {
  std::vector<std::vector<std::string>> out;
  for (const auto& e : state_of(code).entries) {
    out.emplace_back();
    for (const guards::Guard& g : e->guards->guards()) out.back().push_back(g.text());
  }
  return out;
}
size_t entry_count(PyCodeObject* code) { return state_of(code).entries.size(); }

void set_skipped_files(std::vector<std::string> skipped, std::vector<std::string> but_not, std::vector<std::string> hidden) {
  skipped_files() = {std::move(skipped), std::move(but_not), std::move(hidden)};
}
OriginalCode original_code(PyCodeObject* code) {
  const CodeState& state = state_of(code);
  return state.root ? OriginalCode{state.root, state.prologue, state.call} : OriginalCode{code, 0, -1};
}
bool may_go_on(PyCodeObject* code) {
  CodeState& state = state_of(code);
  if (state.root || !is_skipped_file(code, state)) return true;
  if (state.is_builder) return true;
  const char* name = PyUnicode_AsUTF8(code->co_filename);
  if (!name) { PyErr_Clear(); return false; }
  const std::string_view file = name;
  if (file == "<string>") return true;   // what dataclasses write
  for (const char* wrapper : {"/contextlib.py", "/torch/_dynamo/external_utils.py", "/torch/utils/_contextlib.py", "/torch/amp/autocast_mode.py", "/torch/autograd/grad_mode.py"})
    if (file.ends_with(wrapper)) return true;
  return false;
}
bool runs_hidden(PyCodeObject* code) { return is_skipped_file(code, state_of(code)) == 2; }
bool reads_optimiser_state(PyCodeObject* code) { return reads_optimiser_state(code, text_of(code->co_filename), text_of(code->co_name)); }

}  // namespace cutaway::frames
