// Backends that are Python functions, in the C++ table: found by name like any other.
#include <cstdint>

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/casters/held.h"
#include "app/casters/tensor_caster.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/command.h"
#include "compiler/native/cuda_driver.h"
#include "compiler/native/cuda_graph.h"
#include "compiler/native/frozen.h"
#include "compiler/native/profile.h"
#include "core/debug/process.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

struct PythonGraph final : backends::CompiledGraph {
  Held function;
  explicit PythonGraph(nb::object f) : function(std::move(f)) {}

  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override {
    nb::gil_scoped_acquire gil;
    nb::list list;
    for (const c10::IValue& v : inputs) list.append(from_ivalue(v));
    inputs.clear();
    std::vector<c10::IValue> outputs;
    for (nb::handle h : nb::list(function.object(list))) outputs.push_back(to_ivalue(h));
    return outputs;
  }
  bool tells_values() const override {
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(nb::getattr(function.object, "tells_values", nb::bool_(false)));
  }
  std::vector<c10::IValue> run_observed(std::vector<c10::IValue>& inputs, const backends::ValueObserver& observer) override {
    nb::gil_scoped_acquire gil;
    nb::list list;
    for (const c10::IValue& v : inputs) list.append(from_ivalue(v));
    inputs.clear();
    nb::object tell = nb::cpp_function([&observer](const std::string& name, nb::handle value) {
      const c10::IValue v = to_ivalue(value);
      if (v.isTensor()) observer(name, v.toTensor());
    });
    std::vector<c10::IValue> outputs;
    for (nb::handle h : nb::list(function.object.attr("run_observed")(list, tell))) outputs.push_back(to_ivalue(h));
    return outputs;
  }
  int64_t new_kernels() const override {
    nb::gil_scoped_acquire gil;
    nb::object count = nb::getattr(function.object, "new_kernels", nb::int_(0));
    return nb::cast<int64_t>(count);
  }
  std::vector<backends::Kernel> kernels() const override {
    nb::gil_scoped_acquire gil;
    std::vector<backends::Kernel> found;
    for (auto& [name, nodes] : nb::cast<std::vector<std::pair<std::string, std::vector<std::string>>>>(nb::getattr(function.object, "kernels", nb::list())))
      found.push_back({std::move(name), std::move(nodes)});
    return found;
  }
};

struct PythonBackend final : backends::Backend {
  std::shared_ptr<Held> compiler;
  std::string parameters;
  backends::Settings settings;

  PythonBackend(std::shared_ptr<Held> f, std::string p) : compiler(std::move(f)), parameters(std::move(p)) {}
  void configure(const backends::Settings& s) override { settings = s; }
  base::Result<std::unique_ptr<backends::CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>& examples, debug::Sink*) override {
    nb::gil_scoped_acquire gil;
    nb::list inputs;
    for (const c10::IValue& v : examples) inputs.append(from_ivalue(v));
    nb::dict told;
    told["stage"] = settings.stage;
    told["tracing_mode"] = settings.tracing_mode;
    told["parameters"] = parameters;
    told["options"] = nb::cast(settings.options);
    told["extra"] = nb::cast(settings.extra);
    told["observe"] = settings.observe;
    told["switches"] = settings.switches.to_json();
    try {
      nb::object compiled = compiler->object(nb::cast(ir::Graph(graph)), inputs, told);
      return std::unique_ptr<backends::CompiledGraph>(std::make_unique<PythonGraph>(std::move(compiled)));
    } catch (nb::python_error& e) {
      // Ours says that the question makes no sense (a graph that fx cannot hold, a module that is not there); a compiler's own errors fly on.
      if (!e.matches(nb::module_::import_("cutaway._native").attr("Error"))) throw;
      return base::Error{.what = nb::str(e.value()).c_str()};
    }
  }
};

/// A graph compiled by a backend of the table, for Python to call.
struct NativeGraph {
  std::unique_ptr<backends::CompiledGraph> compiled;
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const {
    nb::gil_scoped_release release;
    return compiled->run(inputs);
  }
};

nb::dict row_dict(const capabilities::Row& row) {
  nb::dict d;
  capabilities::for_each_field(row, [&](const char* field, const auto& value) { d[field] = nb::cast(value); });
  return d;
}

NativeGraph compile_backend(const std::string& name, const ir::Graph& graph, nb::list inputs, const std::string& stage) {
  auto backend = unwrap(backends::find_backend(name));
  backends::Settings settings{.stage = stage};
  settings.is_watched = true;   // else the first runs would be those of operators, and what is compiled would not be looked at
  backend->configure(settings);
  const std::vector<c10::IValue> examples = to_ivalues(inputs);
  nb::gil_scoped_release release;
  return {unwrap(backend->compile(graph, examples, debug::process_sink()))};
}

}  // namespace

void bind_backends(nb::module_& m) {
  m.def("start_profile", &native::start_profile, "Graphs that native compiles from now on are timed, step by step.");
  m.def("profile_text", [] { nb::gil_scoped_release release; return native::profile_text(); });
  m.def("profile_json", [] { nb::gil_scoped_release release; return native::profile_json(); });
  m.def("profile_timeline", [] { nb::gil_scoped_release release; return native::profile_timeline(); });
  m.def("raise_checks_as", &raise_checks_as, nb::arg("type"), "What a difference found by CUTAWAY_CHECK is raised as.");
  nb::exception<backends::ProgramDied>(m, "ProgramDied", PyExc_RuntimeError);
  nb::class_<NativeGraph>(m, "NativeGraph", "A graph compiled by a backend of the table.")
      .def("__call__", [](const NativeGraph& g, nb::list inputs) {
        nb::list outputs;
        for (const c10::IValue& v : g.run(to_ivalues(inputs))) outputs.append(from_ivalue(v));
        return outputs;
      }, nb::arg("inputs"));
  m.def("compile_backend", &compile_backend, nb::arg("name"), nb::arg("graph"), nb::arg("inputs"), nb::arg("stage"), "Compiles a graph with a backend of the table, by name, for somebody who watches its runs: what is compiled is there before the first one.");
  m.def("register_backend", [](std::string name, nb::callable compile) {
    auto held = std::make_shared<std::shared_ptr<Held>>(std::make_shared<Held>(nb::object(compile)));
    at_exit([held] { held->reset(); });   // the table outlives the interpreter
    backends::register_backend(std::move(name), [held](std::string_view parameters) -> base::Result<std::unique_ptr<backends::Backend>> {
      if (!*held) return base::Error{.what = "Python is shutting down"};
      return std::unique_ptr<backends::Backend>(std::make_unique<PythonBackend>(*held, std::string(parameters)));
    });
  }, nb::arg("name"), nb::arg("compile"),
        "Adds a backend to the table: compile(graph, inputs, settings) gives a function that takes a list of inputs and returns the outputs.");
  m.def("thaw_all", [] { native::thaw_all(); });
  m.def("cuda_state", [] {
    nb::dict d;
    const auto& driver = native::cuda_driver();
    const auto& compiler = native::nvrtc_version();
    d["driver"] = driver.ok() ? std::string() : driver.error().text();
    d["devices"] = native::cuda_devices();
    d["nvrtc"] = compiler.ok() ? *compiler : compiler.error().text();
    const auto counts = native::cuda_graph_counts();
    d["recorded"] = counts.recorded;
    d["replayed"] = counts.replayed;
    d["reasons"] = native::cuda_graph_reasons();
    return d;
  }, "Of the backend native: cards and compiler, how many CUDA graphs were recorded and played back, and reasons against others.");
  m.def("list_backends", [] {
    nb::list rows;
    for (const capabilities::Row& row : backends::list_backends()) rows.append(row_dict(row));
    return rows;
  }, "A row for each backend that is registered: its name and what it can do.");
  m.def("backend_row", [](const std::string& name) { return row_dict(capabilities::row_of(name)); }, nb::arg("name"), "What a backend can do, by its name (cutaway backends).");
  m.def("has_backend_row", [](const std::string& name) { return capabilities::find(name) != nullptr; }, nb::arg("name"), "False for a name that only torch, or the program, may know.");
}

}  // namespace cutaway::bindings
