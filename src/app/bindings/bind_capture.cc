// compile() and what belongs to it: sessions, settings, counters, records of compilations; made code for tests.
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/errors.h"
#include "app/bindings/tensor_caster.h"
#include "compiler/backends/backend.h"
#include "compiler/bytecode/resume.h"
#include "compiler/capture/capture.h"
#include "compiler/frames/compiled_function.h"
#include "compiler/frames/graph_functions.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/python_frame.h"
#include "compiler/frames/run_plan.h"
#include "compiler/frames/session.h"
#include "compiler/guards/tensor_object.h"
#include "compiler/replay/frame_replay.h"
#include "core/capabilities/capabilities.h"
#include "core/debug/events.h"
#include "core/debug/process.h"
#include "core/ir/graph.h"
#include "core/ir/text.h"
#include "core/trace/symbolic.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace cutaway::bindings {
namespace {

using bytecode::ObjectRef;

nb::object given(const ObjectRef& o) { return nb::borrow(o.get()); }
PyCodeObject* code_of(nb::handle o) {
  if (PyFunction_Check(o.ptr())) return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(o.ptr()));
  if (!PyCode_Check(o.ptr())) throw nb::type_error("a function or a code object is needed");
  return reinterpret_cast<PyCodeObject*>(o.ptr());
}
std::shared_ptr<const bytecode::Code> decoded(nb::handle o) { return unwrap(bytecode::decode_code(code_of(o))); }

// A graph for C++ to run; a refusal is raised as cutaway.Error.
std::shared_ptr<frames::GraphFunction> compile_program(frames::CapturedGraph g) {
  auto program = exec::Program::prepare(g.graph);
  if (!program.ok()) {
    nb::object error = nb::module_::import_("cutaway._native").attr("Error");
    PyErr_SetString(error.ptr(), program.error().text().c_str());
    return nullptr;
  }
  return frames::make_program_graph(std::move(program).value(), g.name);
}

// A graph for a backend of the C++ table. Its refusal leads to the reference interpreter: numbers are right, and the log tells why.
frames::Compile compile_by_table(std::string name) {
  // Workers put torch's aot_eager into the table for graphs of Dynamo's; what we captured ourselves, we differentiate ourselves.
  if (const capabilities::Row* row = capabilities::find(name); row && !row->of_ours.empty()) name = row->of_ours + name.substr(row->name.size());
  return [name](frames::CapturedGraph g) -> std::shared_ptr<frames::GraphFunction> {
    auto backend = backends::find_backend(name);
    std::string refused;
    if (!backend.ok()) {
      refused = backend.error().text();
    } else {
      std::vector<c10::IValue> examples;
      if (!frames::to_values(g.example_inputs, examples)) return nullptr;
      try {
        auto compiled = [&] {
          nb::gil_scoped_release release;   // autograd's engine, which records a backward, refuses to run with it
          return (*backend)->compile(g.graph, examples, debug::process_sink());
        }();
        if (compiled.ok()) return frames::make_backend_graph(std::move(compiled).value(), g.graph);
        refused = compiled.error().text();
      } catch (...) {
        guards::set_python_error();
        return nullptr;
      }
    }
    debug::decide(debug::process_sink(), "backend", "refused", refused, {{"backend", name}, {"graph", g.name}});
    return compile_program(std::move(g));
  };
}

// --- sizes between a Python backend and us: nested tuples, as python/cutaway/_sizes.py has them ---
constexpr const char* kOperations[] = {"", "", "add", "mul", "floor_div", "mod", "min", "max"};   // by ir::SymExpr::Kind
nb::object python_expression(const ir::SymExpr& e) {
  if (e.kind == ir::SymExpr::Kind::constant) return nb::int_(e.constant);
  if (e.kind == ir::SymExpr::Kind::symbol) return nb::str(e.symbol.c_str());
  nb::list parts;
  parts.append(kOperations[static_cast<size_t>(e.kind)]);
  for (const auto& o : e.operands) parts.append(python_expression(*o));
  return nb::tuple(parts);
}
ir::Dim expression_of(nb::handle h) {
  if (PyLong_Check(h.ptr())) return ir::Dim(nb::cast<int64_t>(h));
  if (PyUnicode_Check(h.ptr())) return ir::Dim::symbol(nb::cast<std::string>(h));
  ir::SymExpr e;
  const auto name = nb::cast<std::string>(h[0]);
  size_t kind = 2;
  while (kind < std::size(kOperations) && name != kOperations[kind]) ++kind;
  if (kind == std::size(kOperations)) throw nb::value_error(("no operation on sizes is called " + name).c_str());
  e.kind = static_cast<ir::SymExpr::Kind>(kind);
  for (size_t i = 1; i < nb::len(h); ++i) {
    const ir::Dim operand = expression_of(h[i]);
    e.operands.push_back(operand.is_symbolic() ? operand.expr() : std::make_shared<const ir::SymExpr>(ir::SymExpr{.constant = operand.value()}));
  }
  return ir::Dim(std::make_shared<const ir::SymExpr>(std::move(e)));
}
// Of each input; None for a graph without symbols.
nb::object sizes_of_inputs(const ir::Graph& g) {
  bool is_symbolic = false;
  nb::list out;
  for (const ir::Input& input : g.inputs) {
    const ir::Value& v = g.value(input.value);
    if (v.type.kind == ir::Type::Kind::integer) {
      is_symbolic = true;
      out.append(v.name);
    } else if (v.type.is_tensor()) {
      nb::list sizes;
      for (const ir::Dim& d : v.type.tensor.sizes) {
        is_symbolic = is_symbolic || d.is_symbolic();
        sizes.append(d.is_symbolic() ? python_expression(*d.expr()) : nb::object(nb::int_(d.value())));
      }
      out.append(sizes);
    } else {
      out.append(nb::none());
    }
  }
  return is_symbolic ? nb::object(out) : nb::none();
}
std::shared_ptr<const std::vector<symbolic::Guard>> conditions_of(nb::handle list) {
  auto out = std::make_shared<std::vector<symbolic::Guard>>();
  for (nb::handle h : list) {
    const auto sign = nb::cast<std::string>(h[0]);
    using Kind = symbolic::Condition::Kind;
    symbolic::Guard g;
    g.kind = sign == "==" ? Kind::equal : sign == "!=" ? Kind::not_equal : sign == "<" ? Kind::less : Kind::less_equal;
    g.left = expression_of(h[1]);
    g.right = expression_of(h[2]);
    g.because = "the backend asked";
    out->push_back(std::move(g));
  }
  return out;
}

// A graph for a Python function: compile(graph, examples, name, sizes) gives a callable, and with sizes what it took for granted about them.
frames::Compile compile_by(ObjectRef function) {
  return [function](frames::CapturedGraph g) -> std::shared_ptr<frames::GraphFunction> {
    try {
      std::vector<size_t> floats = frames::floats_as_tensors(g);
      nb::list examples;
      for (const ObjectRef& o : g.example_inputs) examples.append(given(o));
      nb::object sizes = sizes_of_inputs(g.graph);
      nb::object compiled = nb::borrow(function.get())(nb::cast(std::move(g.graph)), examples, g.name, sizes);
      if (sizes.is_none()) return frames::make_callable_graph(ObjectRef::steal(compiled.release().ptr()), std::move(floats));
      auto conditions = conditions_of(compiled[1]);
      auto made = frames::make_callable_graph(ObjectRef::borrow(nb::object(compiled[0]).ptr()), std::move(floats));
      made->size_guards = std::move(conditions);
      return made;
    } catch (nb::python_error& e) {
      e.restore();
      return nullptr;
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
      return nullptr;
    }
  };
}

// The graph in the debug directory, where that is on: as text, as fx, and as a script that runs with torch alone.
void keep_graph_files(const frames::CapturedGraph& g) {
  debug::Sink* sink = debug::process_sink();
  debug::keep_artifact(sink, "capture", g.name, "graph.cut", [&] { return ir::print(g.graph); });
  if (!sink || !(sink->keeps_file("fx_graph_readable") || sink->keeps_file("fx_graph_runnable"))) return;
  try {
    nb::list examples;
    for (const ObjectRef& o : g.example_inputs) examples.append(given(o));
    nb::module_::import_("cutaway._graph_files").attr("keep")(nb::cast(ir::Graph(g.graph)), examples, g.name);
  } catch (const nb::python_error& e) {   // a file that cannot be written must not end the program
    debug::say(sink, "session", debug::Level::warning, std::string("files of a graph were not written: ") + e.what());
  }
}

// The same backend with the same options is the same session as long as anything uses it: what is compiled is shared.
std::shared_ptr<frames::Session> make_session(std::string name, nb::object backend, nb::object compile, bool fullgraph, std::optional<bool> dynamic, bool shared,
                                              std::optional<int64_t> observe_limit) {
  static auto* known = new std::vector<std::weak_ptr<frames::Session>>;
  std::erase_if(*known, [](const auto& w) { return w.expired(); });
  if (shared)
    for (const auto& weak : *known)
      if (auto s = weak.lock(); s && s->backend_name == name && s->backend.get() == backend.ptr() && s->fullgraph == fullgraph && s->dynamic == dynamic) return s;
  auto s = std::make_shared<frames::Session>();
  if (shared) known->push_back(s);
  s->backend_name = std::move(name);
  s->backend = ObjectRef::borrow(backend.ptr());
  s->fullgraph = fullgraph;
  s->dynamic = dynamic;
  s->observe_limit = observe_limit;
  s->capture = [](const guards::FrameView& f, const bytecode::Code& c, const frames::CaptureOptions& o, const frames::Compile& compile) { return capture::capture_frame(f, c, o, compile); };
  s->record = [](const frames::FailedFrame& f) -> base::Result<std::string> {
    nb::object place = nb::module_::import_("cutaway._compile").attr("_record_folder")();
    auto path = replay::write_frame(f, {.folder = nb::cast<std::string>(place), .versions = {{"cutaway", CUTAWAY_VERSION}}});
    if (path.ok()) nb::module_::import_("cutaway._replay").attr("_written").attr("add")(*path);
    return path;
  };
  s->with_backend = [fullgraph, dynamic](PyObject* other) -> std::shared_ptr<frames::Session> {
    try {
      return nb::cast<std::shared_ptr<frames::Session>>(nb::module_::import_("cutaway._compile").attr("_session")(nb::borrow(other), fullgraph, dynamic, nb::none(), nb::none()));
    } catch (nb::python_error& e) {
      e.restore();
      return nullptr;
    }
  };
  if (!compile.is_none()) s->compile = compile_by(ObjectRef::borrow(compile.ptr()));
  else if (s->backend_name == "eager") s->compile = &compile_program;
  else {
    unwrap(backends::find_backend(s->backend_name));   // a setting that it does not have is said now, not left to a fall-back
    s->compile = compile_by_table(s->backend_name);
  }
  s->compile = [inner = std::move(s->compile)](frames::CapturedGraph g) {
    keep_graph_files(g);
    return inner(std::move(g));
  };
  return s;
}

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
  m.def("session", &make_session, "name"_a, "backend"_a.none(), "compile"_a.none(), "fullgraph"_a, "dynamic"_a.none(), "shared"_a, "observe_limit"_a.none() = nb::none(),
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
