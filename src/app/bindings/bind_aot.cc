#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/errors.h"
#include "app/bindings/tensor_caster.h"
#include "compiler/aot/specialize.h"
#include "compiler/backends/backend.h"
#include "core/debug/process.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using c10::IValue;

std::vector<IValue> to_values(nb::handle inputs) {
  std::vector<IValue> values;
  values.reserve(nb::len(inputs));
  for (nb::handle h : inputs) {
    if (is_tensor(h.ptr())) values.emplace_back(unwrap_tensor(h.ptr()));
    else values.push_back(to_ivalue(h));
  }
  return values;
}

aot::Partition partition_from(const std::string& word) {
  if (word == "min_cut") return aot::Partition::min_cut;
  if (word == "save_all") return aot::Partition::save_all;
  throw ErrorException({.what = "unknown way to split a joint graph: " + word, .hint = "\"min_cut\" or \"save_all\""});
}

/// Backends of the table compile the two halves, except eager, which is the wrapper's own.
aot::Compile compile_with(const std::string& backend) {
  if (backend == "eager") return {};
  return [backend](const ir::Graph& graph, const std::vector<IValue>& examples, debug::Sink* sink) -> base::Result<exec::Runnable> {
    CUTAWAY_TRY_ASSIGN(std::unique_ptr<backends::Backend> found, backends::find_backend(backend));
    found->configure({.stage = "aot"});
    CUTAWAY_TRY_ASSIGN(std::unique_ptr<backends::CompiledGraph> compiled, found->compile(graph, examples, sink));
    std::shared_ptr<backends::CompiledGraph> held = std::move(compiled);
    return exec::Runnable([held](std::vector<IValue>& inputs) { return held->run(inputs); });
  };
}

/// Runs f without the GIL; Python meta kernels, hooks and backends take it when they run.
template <class F> auto unlocked(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

nb::object run(aot::Specialized& self, nb::object inputs, bool boxed) {
  std::vector<IValue> values = to_values(inputs);
  if (boxed) inputs.attr("clear")();   // so that the run holds the only references
  inputs.reset();
  const auto outputs = unlocked([&] { return self.run(values); });
  nb::object list = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i) PyTuple_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), from_ivalue(outputs[i]).release().ptr());
  return list;
}

const char* word_for(aot::OutputRule::From from) {
  using From = aot::OutputRule::From;
  switch (from) {
    case From::value: return "value";
    case From::primal: return "input";
    case From::view_of_primal: return "view_of_input";
    case From::view_of_result: return "view_of_result";
    case From::output: return "output";
    case From::literal: return "literal";
  }
  return "";
}

nb::list primals_of(const aot::Function& f) {
  nb::list list;
  for (const aot::Primal& p : f.joint().primals) {
    nb::dict d;
    d["inputs"] = nb::cast(std::vector<size_t>(p.inputs));
    d["is_base"] = p.is_base;
    d["requires_grad"] = p.requires_grad;
    d["writes_data"] = p.writes_data;
    d["writes_metadata"] = p.writes_metadata;
    d["writes_under_no_grad"] = p.writes_under_no_grad;
    list.append(d);
  }
  return list;
}
nb::list outputs_of(const aot::Function& f) {
  nb::list list;
  for (const aot::OutputRule& r : f.joint().outputs) {
    nb::dict d;
    d["from"] = word_for(r.from);
    d["index"] = r.index;
    d["requires_grad"] = r.requires_grad;
    list.append(d);
  }
  return list;
}

}  // namespace

void bind_aot(nb::module_& m) {
  nb::class_<aot::Function>(m, "AotFunction", "A graph differentiated ahead of time for one kind of inputs: its graphs, and what the split decided.")
      .def_prop_ro("joint", [](const aot::Function& self) { return self.joint().graph; }, "Forward and backward as one functional graph.")
      .def_prop_ro("forward", [](const aot::Function& self) { return self.graphs().forward; })
      .def_prop_ro("backward", [](const aot::Function& self) -> std::optional<ir::Graph> {
        return self.joint().has_backward ? std::optional(self.graphs().backward) : std::nullopt;
      }, "None when nothing requires grad.")
      .def_prop_ro("saved_bytes", [](const aot::Function& self) { return self.graphs().saved_bytes; }, "Of what lives only between forward and backward.")
      .def_prop_ro("kept_bytes", [](const aot::Function& self) { return self.graphs().kept_bytes; }, "Of inputs and outputs that backward uses, which live anyway.")
      .def_prop_ro("recomputed", [](const aot::Function& self) { return self.graphs().recomputed; }, "Operators that run again in backward.")
      .def_prop_ro("has_compiled_backward", &aot::Function::has_compiled_backward)
      .def_prop_ro("primals", &primals_of)
      .def_prop_ro("outputs", &outputs_of);
  nb::class_<aot::Specialized>(m, "AotGraph", "A captured graph to call: differentiated ahead of time for each kind of inputs when they first come.")
      .def("__init__", [](aot::Specialized* self, const ir::Graph& graph, std::string name, const std::string& partition, const std::string& backend) {
        aot::FunctionOptions options;
        options.name = std::move(name);
        options.partition = partition_from(partition);
        options.compile = compile_with(backend);
        options.sink = debug::process_sink();
        new (self) aot::Specialized(graph, std::move(options));
      }, nb::arg("graph"), nb::arg("name") = "model", nb::arg("partition") = "min_cut", nb::arg("backend") = "eager")
      .def("find", [](aot::Specialized& self, nb::object inputs) {
        const auto values = to_values(inputs);
        return unwrap(unlocked([&] { return self.find(values); }));
      }, nb::arg("inputs"), "The function for inputs like these, made now if there is none.")
      .def("__call__", [](aot::Specialized& self, nb::args inputs) { return run(self, nb::borrow(inputs), false); }, nb::sig("def __call__(self, *inputs: object) -> tuple"))
      .def("run", [](aot::Specialized& self, nb::object inputs) { return run(self, std::move(inputs), true); }, nb::arg("inputs"), nb::sig("def run(self, inputs: list) -> tuple"),
           "Runs on a list of inputs, which it empties so that they are freed at their last use.")
      .def_prop_ro("functions", &aot::Specialized::functions);
}

}  // namespace cutaway::bindings
