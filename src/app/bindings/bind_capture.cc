// compile() for Python: sessions, settings, counters, records of compilations; made code for tests.
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "app/composition/sessions.h"
#include "compiler/bytecode/resume.h"
#include "compiler/frames/compiled_function.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/python_frame.h"
#include "compiler/frames/report.h"
#include "compiler/frames/run_plan.h"
#include "compiler/frames/session.h"
#include "core/ir/graph.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace cutaway::bindings {
namespace {

using bytecode::ObjectRef;

PyCodeObject* code_of(nb::handle o) {
  if (PyFunction_Check(o.ptr())) return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(o.ptr()));
  if (!PyCode_Check(o.ptr())) throw nb::type_error("a function or a code object is needed");
  return reinterpret_cast<PyCodeObject*>(o.ptr());
}
std::shared_ptr<const bytecode::Code> decoded(nb::handle o) { return unwrap(bytecode::decode_code(code_of(o))); }

nb::list stack_of(const frames::BreakReason& r) {
  nb::list out;
  for (const auto& f : r.stack) out.append(nb::make_tuple(f.file, f.line, f.function, f.text));
  return out;
}

nb::dict as_dict(const frames::CompileRecord& r) {
  static constexpr const char* kOutcomes[] = {"compiled", "skipped", "failed", "limit"};
  nb::dict d;
  d["function"] = r.function;
  d["file"] = r.file;
  d["line"] = r.line;
  d["outcome"] = kOutcomes[static_cast<int>(r.outcome)];
  d["guards"] = r.guards;
  d["is_resume"] = r.is_resume;
  d["recompile_reason"] = r.recompile_reason;
  d["seconds"] = r.seconds;
  d["backend_seconds"] = r.backend_seconds;
  d["graph_name"] = r.graph_name;
  d["reason"] = nb::none();
  if (!r.reason.id.empty()) {
    nb::dict reason;
    reason["id"] = r.reason.id;
    reason["what"] = r.reason.what;
    reason["hint"] = r.reason.hint;
    reason["cause"] = r.reason.cause ? frames::reason_line(*r.reason.cause) : "";
    reason["stack"] = stack_of(r.reason);
    d["reason"] = reason;
  }
  d["graph"] = nb::none();
  d["op_count"] = 0;
  d["ending"] = "";
  if (r.plan) {
    static constexpr const char* kEndings[] = {"return", "raise", "break", "eager"};
    d["ending"] = kEndings[r.plan->ending.index()];
    d["op_count"] = r.plan->op_count;
    d["plan"] = frames::plan_text(*r.plan);
    if (r.plan->captured && r.plan->graph) d["graph"] = nb::cast(ir::Graph(*r.plan->captured));
  }
  return d;
}

bytecode::FrameShape shape_of(const std::vector<bool>& bound, const std::vector<bool>& stack_null) { return {bound, stack_null}; }

}  // namespace

void bind_capture(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("capture", "Compiled functions: sessions, settings, records.");
  nb::class_<frames::Session>(m, "Session", "A backend and options; functions compiled with the same one share their compiled entries.");
  m.def("session", &composition::make_session, "name"_a, "backend"_a.none(), "compile"_a.none(), "fullgraph"_a, "dynamic"_a.none(), "shared"_a, "observe_limit"_a.none() = nb::none(),
        "compile(graph, examples, name, sizes) gives a callable, and with sizes also conditions on them; None takes the backend of that name from the C++ table.");
  m.def("compiled_function", [](nb::object target, std::shared_ptr<frames::Session> s) { return nb::steal(frames::make_compiled_function(target.ptr(), std::move(s))); },
        "target"_a, "session"_a);
  m.def("disabled_function", [](nb::object target) { return nb::steal(frames::make_disabled_function(target.ptr())); }, "target"_a);
  m.attr("CompiledFunction") = nb::borrow(reinterpret_cast<PyObject*>(frames::compiled_function_type()));
  m.attr("is_supported") = frames::start();
  nb::enum_<frames::Mark>(m, "Mark")
      .value("none", frames::Mark::none)
      .value("graph_break", frames::Mark::graph_break)
      .value("allow_in_graph", frames::Mark::allow_in_graph)
      .value("constant_result", frames::Mark::constant_result)
      .value("reorderable", frames::Mark::reorderable);
  m.def("mark_function", [](nb::handle f, frames::Mark mark) { frames::mark_function(f.ptr(), mark); }, "function"_a, "mark"_a);
  m.def("reset", &frames::reset);
  m.def("is_compiling", &frames::is_compiling);
  m.def("counters", [] { return frames::counters(); });
  m.def("clear_counters", [] { frames::counters().clear(); });
  m.def("counters_of", [](const std::string& events) { return frames::count_frames(unwrap(debug::read_events(events))); }, "events"_a, "The counters of the process that wrote this file of events.");
  m.def("add_listener", [](nb::callable listen) {
    auto held = std::make_shared<ObjectRef>(ObjectRef::borrow(listen.ptr()));
    return frames::add_listener([held](const frames::CompileRecord& r) { nb::borrow(held->get())(as_dict(r)); });
  }, "listen"_a);
  m.def("remove_listener", &frames::remove_listener, "number"_a);
  m.def("set_skipped_files", &frames::set_skipped_files, "skipped"_a, "but_not"_a, "hidden"_a);
  m.def("entry_guards", [](nb::handle f) { return frames::entry_guards(code_of(f)); }, "function"_a);
  m.def("entry_count", [](nb::handle f) { return frames::entry_count(code_of(f)); }, "function"_a);
  at_exit([] { frames::reset(); });

  nb::class_<frames::Settings>(m, "Settings")
      .def_rw("cache_size_limit", &frames::Settings::cache_size_limit)
      .def_rw("strict", &frames::Settings::strict)
      .def_rw("automatic_dynamic", &frames::Settings::automatic_dynamic)
      .def_rw("suppress", &frames::Settings::suppress)
      .def_rw("verbose", &frames::Settings::verbose)
      .def_rw("replay_record_enabled", &frames::Settings::replay_record_enabled)
      .def_rw("record_errors", &frames::Settings::record_errors)
      .def_rw("collective_group", &frames::Settings::collective_group)
      .def_rw("compiler_collective_timeout", &frames::Settings::compiler_collective_timeout)
      .def_rw("planted_fault", &frames::Settings::planted_fault)
      .def_rw("only_function", &frames::Settings::only_function);
  m.def("settings", &frames::settings, nb::rv_policy::reference);

  // Made code, for tests: a frame is stopped, described and gone on with.
  m.def("listing", [](nb::handle f) { return decoded(f)->text(); }, "function"_a, "The bytecode as capture sees it.");
  m.def("instructions", [](nb::handle f) {
    nb::list out;
    for (const auto& i : decoded(f)->instructions()) out.append(nb::make_tuple(std::string(bytecode::op_name(i.op)), i.arg, i.offset, i.line, i.target));
    return out;
  }, "function"_a);
  m.def("live_before", [](nb::handle f, int index) { return decoded(f)->live_before(index); }, "function"_a, "index"_a);
  m.def("resume", [](nb::handle f, int index, const std::vector<bool>& stack_null, nb::list slots, nb::list stack) {
    auto code = decoded(f);
    std::vector<PyObject*> values, entries, arguments;
    std::vector<bool> bound;
    nb::object missing = nb::borrow(Py_Ellipsis);   // an unbound slot
    for (nb::handle h : slots) { bound.push_back(!h.is(missing)); values.push_back(h.is(missing) ? nullptr : h.ptr()); }
    size_t next = 0;
    for (bool null : stack_null) entries.push_back(null ? nullptr : nb::object(stack[next++]).ptr());
    ObjectRef made = unwrap(bytecode::make_resume_code(*code, index, shape_of(bound, stack_null)));
    ObjectRef function = bytecode::bind_made_code(*code, made.get(), PyFunction_GET_GLOBALS(f.ptr()), PyFunction_GET_CLOSURE(f.ptr()), values, entries, arguments);
    if (!function) throw nb::python_error();
    PyObject* answer = PyObject_Vectorcall(function.get(), arguments.data(), arguments.size(), nullptr);
    if (!answer) throw nb::python_error();
    return nb::steal(answer);
  }, "function"_a, "index"_a, "stack_null"_a, "slots"_a, "stack"_a, "Goes on in a function at an instruction, with these variables (... is unbound) and this stack.");
}

}  // namespace cutaway::bindings
