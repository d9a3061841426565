#include "compiler/replay/frame_replay.h"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "compiler/capture/capture.h"
#include "compiler/frames/dynamic_capture.h"
#include "compiler/frames/report.h"
#include "compiler/frames/run_plan.h"
#include "compiler/frames/session.h"
#include "compiler/replay/object_reader.h"
#include "compiler/replay/object_writer.h"
#include "core/base/files.h"
#include "core/tensor/convert.h"

namespace cutaway::replay {

namespace fs = std::filesystem;
using bytecode::ObjectRef;
using record::kAbsent;

namespace {

constexpr const char* kPlantedFault = "CUTAWAY_PLANT_CAPTURE_FAULT";

std::string name_text(PyObject* o) {
  const char* s = o ? PyUnicode_AsUTF8(o) : nullptr;
  if (!s) { PyErr_Clear(); return "?"; }
  return s;
}

std::string file_name(std::string text) {
  for (char& c : text)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '-') c = '_';
  return text.substr(text.size() - std::min<size_t>(text.size(), 60));   // the end tells more
}

std::string python_version() { return std::string(Py_GetVersion()).substr(0, std::string(Py_GetVersion()).find(' ')); }

record::Failure failure_of(const frames::BreakReason& reason, bool is_internal, const std::string& instruction) {
  record::Failure f{.kind = is_internal ? "internal-error" : "unsupported", .id = reason.id, .what = reason.what, .hint = reason.hint, .instruction = instruction};
  for (const auto& s : reason.stack) f.stack.push_back({.file = s.file, .function = s.function, .text = s.text, .line = s.line});
  return f;
}

ir::RegionState state_now() {
  ir::RegionState s;
  const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  s.grad_enabled = autograd.get_grad_mode();
  s.inference_mode = autograd.get_inference_mode();
  for (at::DeviceType device : {at::kCPU, at::kCUDA})
    if (at::autocast::is_autocast_enabled(device)) {
      ir::RegionState::Autocast a;
      a.device = tensor::from_aten(at::Device(device));
      a.enabled = true;
      a.dtype = tensor::from_aten(at::autocast::get_autocast_dtype(device));
      a.cache = at::autocast::is_autocast_cache_enabled();
      s.autocast.push_back(std::move(a));
    }
  return s;
}

/// The recorded state of torch, until it goes.
class StateScope {
 public:
  explicit StateScope(const record::FrameRecord& r) : grad_(r.state.grad_enabled.value_or(true)), default_dtype_(c10::get_default_dtype()) {
    if (r.state.inference_mode.value_or(false)) inference_.emplace(true);
    for (const auto& a : r.state.autocast) {
      at::autocast::set_autocast_enabled(tensor::to_aten(a.device).type(), a.enabled);
      at::autocast::set_autocast_dtype(tensor::to_aten(a.device).type(), tensor::to_aten(a.dtype));
      autocast_.push_back(tensor::to_aten(a.device).type());
    }
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(tensor::to_aten(*ir::dtype_from_name(r.default_dtype))));
  }
  ~StateScope() {
    for (at::DeviceType device : autocast_) at::autocast::set_autocast_enabled(device, false);
    c10::set_default_dtype(default_dtype_);
  }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  c10::AutoGradMode grad_;
  std::optional<c10::InferenceMode> inference_;
  std::vector<at::DeviceType> autocast_;
  caffe2::TypeMeta default_dtype_;
};

struct CapturedOnly final : frames::GraphFunction {
  bool run(PyObject* const*, size_t, std::vector<ObjectRef>&) override {
    PyErr_SetString(PyExc_SystemError, "cutaway: a graph that was captured from a record is not run");
    return false;
  }
};

}  // namespace

base::Result<std::string> write_frame(const frames::FailedFrame& failed, const RecordOptions& options) {
  static int64_t number = 0;
  const std::string function = name_text(failed.frame.code->co_qualname);
  const fs::path path = options.folder / (file_name(function) + "-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  CUTAWAY_TRY(base::make_directories(path, base::Sync::fast));
  CUTAWAY_TRY_ASSIGN(store::Store blobs, store::Store::open(path, store::Store::Open::create, store::Durability::fast));
  record::FrameRecord r;
  r.function = function;
  r.file = name_text(failed.frame.code->co_filename);
  r.line = failed.frame.code->co_firstlineno;
  r.failure = failure_of(failed.reason, failed.is_internal, failed.instruction);
  r.fullgraph = failed.options.fullgraph;
  r.all_dynamic = failed.options.all_dynamic;
  r.runs_python = failed.options.runs_python;
  for (const frames::DynamicSize& d : failed.options.dynamic) r.dynamic.push_back({d.source, d.dim});
  r.state = state_now();
  r.default_dtype = std::string(ir::dtype_name(tensor::from_aten(c10::get_default_dtype_as_scalartype())));
  if (!frames::settings().planted_fault.empty()) r.planted[kPlantedFault] = frames::settings().planted_fault;
  r.versions = options.versions;
  r.versions["python"] = python_version();
  r.versions["torch"] = TORCH_VERSION;
  ObjectWriter writer(r, blobs);
  r.callee = writer.add_function(reinterpret_cast<PyObject*>(failed.frame.function));
  for (int i = 0; i < failed.frame.slot_count; ++i) r.arguments.push_back(writer.add(failed.frame.slots[i]));
  for (const frames::CallLog::Call& c : failed.calls.calls) r.results.push_back({c.name, writer.add(c.value.get())});
  CUTAWAY_TRY(writer.finish(options.max_bytes));
  if (const record::Object& callee = r.objects[static_cast<size_t>(r.callee)]; callee.kind != "function") return base::Error{.what = function + " has no form as data", .because = callee.because};
  CUTAWAY_TRY(record::write_record(path, r));
  // What is written is what can be read: a record that its reader refuses would be found out too late.
  if (auto again = record::read_record(path); !again.ok()) return again.error();
  return fs::absolute(path).lexically_normal().string();
}

base::Result<Replayed> replay_frame(const fs::path& directory, debug::Sink* sink) {
  CUTAWAY_TRY_ASSIGN(const record::FrameRecord r, record::read_record(directory));
  if (const auto python = r.versions.find("python"); python != r.versions.end()) {
    const auto minor = [](const std::string& v) { return v.substr(0, v.find('.', v.find('.') + 1)); };
    if (minor(python->second) != minor(python_version()))
      return base::Error{"the record was written by Python " + python->second + ", this is " + python_version(), directory.string(), "bytecode differs between versions", "replay it with Python " + minor(python->second)};
  }
  CUTAWAY_TRY_ASSIGN(const store::Store blobs, record::open_blobs(directory));
  ObjectReader objects(r, blobs);
  if (auto made = objects.make_all(); !made.ok()) return base::Error{made.error().what, directory.string(), made.error().because, made.error().hint};

  auto* function = reinterpret_cast<PyFunctionObject*>(objects.at(r.callee));
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  CUTAWAY_TRY_ASSIGN(const auto decoded, bytecode::decode_code(code));
  if (decoded->argument_count() != static_cast<int>(r.arguments.size()))
    return base::Error{"the frame has " + std::to_string(r.arguments.size()) + " arguments, its code " + std::to_string(decoded->argument_count()), directory.string()};
  std::vector<PyObject*> slots;
  for (record::ObjectId id : r.arguments) slots.push_back(objects.at(id));
  const frames::FrameView frame{function, code, slots.data(), static_cast<int>(slots.size())};
  frames::Session session;
  session.fullgraph = r.fullgraph;
  session.capture = &capture::capture_frame;
  frames::CaptureOptions options;
  options.fullgraph = r.fullgraph;
  options.all_dynamic = r.all_dynamic;
  options.runs_python = r.runs_python;
  for (const record::DynamicSize& d : r.dynamic) options.dynamic.push_back({d.source, static_cast<int>(d.dim)});
  options.sink = sink;
  frames::CallLog calls;
  calls.is_replay = true;
  for (const record::CallResult& c : r.results) calls.calls.push_back({c.call, ObjectRef::borrow(objects.at(c.value))});

  struct Scope {
    frames::CallLog* log;
    std::string fault;
    explicit Scope(frames::CallLog* l, const record::FrameRecord& r) : log(std::exchange(frames::call_log(), l)), fault(frames::settings().planted_fault) {
      if (auto planted = r.planted.find(kPlantedFault); planted != r.planted.end()) frames::settings().planted_fault = planted->second;
    }
    ~Scope() { frames::call_log() = log; frames::settings().planted_fault = fault; }
  } const scope(&calls, r);
  const StateScope state(r);
  const frames::Compile compile = [](frames::CapturedGraph) -> std::shared_ptr<frames::GraphFunction> { return std::make_shared<CapturedOnly>(); };

  Replayed out;
  out.recorded = r.failure;
  std::string sizes;
  frames::CaptureResult result = [&]() -> frames::CaptureResult {
    try {
      return frames::capture_sizes(session, frame, *decoded, options, compile, sizes);
    } catch (const std::exception& e) {
      return frames::InternalError{base::Error{.what = e.what(), .place = "capture"}, {}};
    }
  }();
  if (PyErr_Occurred()) PyErr_Clear();
  if (auto* error = std::get_if<frames::InternalError>(&result)) {
    frames::add_source_lines(error->where);
    out.now = failure_of(frames::internal_reason(*error), true, error->instruction);
  } else if (auto* skip = std::get_if<frames::Skip>(&result)) {
    frames::add_source_lines(skip->reason);
    out.now = failure_of(skip->reason, false, "");
  } else if (auto* plan = std::get_if<frames::Plan>(&result)) {
    if (auto* b = std::get_if<frames::Break>(&plan->ending); b && r.failure.kind == "unsupported") {
      frames::add_source_lines(b->reason);
      out.now = failure_of(b->reason, false, b->frames.front().instruction >= 0 ? decoded->text(b->frames.front().instruction) : "");
    } else {
      out.is_captured = true;
      out.plan = frames::plan_text(*plan);
    }
  } else {
    out.is_captured = true;   // the backend was not asked
  }
  const auto innermost = [](const record::Failure& f) { return f.stack.empty() ? std::string() : f.stack.back().file + ":" + std::to_string(f.stack.back().line); };
  out.is_same = !out.is_captured && out.now.kind == r.failure.kind && out.now.id == r.failure.id && innermost(out.now) == innermost(r.failure) && out.now.what == r.failure.what;
  return out;
}

}  // namespace cutaway::replay
