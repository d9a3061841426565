#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/python_location.h"
#include "app/casters/errors.h"
#include "app/casters/held.h"
#include "app/casters/tensor_caster.h"
#include "compiler/aot/by_size.h"
#include "compiler/backends/differentiated.h"
#include "core/debug/process.h"
#include "core/tensor/convert.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using c10::IValue;

aot::Partition partition_from(const std::string& word) {
  if (word == "min_cut") return aot::Partition::min_cut;
  if (word == "save_all") return aot::Partition::save_all;
  throw ErrorException({.what = "unknown way to split a joint graph: " + word, .hint = "\"min_cut\" or \"save_all\""});
}

/// What a Python compiler made of a graph: a function of a list of inputs.
struct PythonHalf final : exec::CompiledGraph {
  Held function;
  explicit PythonHalf(nb::object f) : function(std::move(f)) {}
  std::vector<IValue> run(std::vector<IValue>& inputs) override {
    nb::gil_scoped_acquire gil;
    nb::list list;
    for (const IValue& v : inputs) list.append(from_ivalue(v));
    inputs.clear();
    std::vector<IValue> outputs;
    try {
      for (nb::handle h : nb::list(function.object(list))) outputs.push_back(to_ivalue(h));
    } catch (nb::python_error& e) {
      throw_through_torch(e);
    }
    return outputs;
  }
};

/// compile(graph, examples) is a Python function that gives a function of a list of inputs. An Error of ours refuses the graph; what else it
/// raises is the caller's.
aot::Compile compile_by_python(nb::object function) {
  auto compiler = std::make_shared<Held>(std::move(function));
  return [compiler](const ir::Graph& graph, const std::vector<IValue>& examples, debug::Sink*) -> base::Result<std::shared_ptr<exec::CompiledGraph>> {
    nb::gil_scoped_acquire gil;
    nb::list inputs;
    for (const IValue& v : examples) inputs.append(from_ivalue(v));
    try {
      return std::shared_ptr<exec::CompiledGraph>(std::make_shared<PythonHalf>(compiler->object(nb::cast(ir::Graph(graph)), inputs)));
    } catch (nb::python_error& e) {
      if (e.matches(nb::module_::import_("cutaway._native").attr("Error"))) return base::Error{.what = nb::str(e.value()).c_str()};
      throw_through_torch(e);
    }
  };
}

/// A program in Python: a function of a list of tensors that gives a flat list.
trace::Callable program_of(nb::object function) {
  auto held = std::make_shared<Held>(std::move(function));
  return [held](std::vector<IValue>& inputs) {
    nb::gil_scoped_acquire gil;
    nb::list list;
    for (const IValue& v : inputs) list.append(from_ivalue(v));
    std::vector<IValue> outputs;
    try {
      for (nb::handle h : nb::list(held->object(list))) outputs.push_back(to_ivalue(h));
    } catch (nb::python_error& e) {
      throw_through_torch(e);
    }
    return outputs;
  };
}

/// Runs f without the GIL; Python meta kernels, hooks and backends take it when they run.
template <class F> auto unlocked(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

nb::object tuple_of(const std::vector<IValue>& outputs) {
  nb::object list = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i) PyTuple_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), from_ivalue(outputs[i]).release().ptr());
  return list;
}

nb::object run(aot::Specialized& self, nb::object inputs, bool boxed) {
  std::vector<IValue> values = to_ivalues(inputs);
  if (boxed) inputs.attr("clear")();   // so that the run holds the only references
  inputs.reset();
  return tuple_of(unlocked([&] { return self.run(values); }));
}

/// `record` gives a graph with its lifted tensors; `record_symbolic` (graph, lifted, guards, positions of symbols that stay numbers), or why not, in words.
aot::BySize::Program sized_program(std::vector<size_t> read, const std::vector<std::pair<size_t, size_t>>& symbols, std::string static_because, nb::object record_symbolic, nb::object record) {
  aot::BySize::Program program{std::move(read), {}, std::move(static_because), {}, {}};
  for (const auto& [input, dimension] : symbols) program.symbols.push_back({input, dimension});
  const auto list_of = [](const std::vector<IValue>& values) {
    nb::list list;
    for (const IValue& v : values) list.append(from_ivalue(v));
    return list;
  };
  program.record = [list_of, held = std::make_shared<Held>(std::move(record))](const std::vector<IValue>& inputs) -> base::Result<aot::BySize::Recorded> {
    nb::gil_scoped_acquire gil;
    try {
      nb::object graph = held->object(list_of(inputs));
      return aot::BySize::Recorded{nb::cast<ir::Graph&>(graph), to_ivalues(graph.attr("lifted")), std::nullopt, {}};
    } catch (nb::python_error& e) {
      throw_through_torch(e);
    }
  };
  program.record_symbolic = [list_of, held = std::make_shared<Held>(std::move(record_symbolic))](const std::vector<IValue>& inputs, const std::vector<int64_t>& numbers) -> base::Result<aot::BySize::Recorded> {
    nb::gil_scoped_acquire gil;
    try {
      nb::object made = held->object(list_of(inputs), nb::cast(numbers));
      if (nb::isinstance<nb::str>(made)) return base::Error{.what = nb::cast<std::string>(made)};
      return aot::BySize::Recorded{nb::cast<ir::Graph&>(made[0]), to_ivalues(nb::object(made[1])), nb::cast<exec::SizeGuards>(made[2]), nb::cast<std::vector<size_t>>(made[3])};
    } catch (nb::python_error& e) {
      throw_through_torch(e);
    }
  };
  return program;
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
  m.def("aot_signature", [](std::string name, const std::vector<at::Tensor>& inputs, const std::vector<std::tuple<std::string, std::string, std::string>>& names) {
    ir::Graph graph;
    graph.name = std::move(name);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [own, kind, qualified] = names.at(i);
      graph.add_input(own, ir::Type::of(tensor::type_of(inputs[i])), kind == "parameter" ? ir::InputKind::parameter : kind == "buffer" ? ir::InputKind::buffer : ir::InputKind::user, qualified);
    }
    return graph;
  }, nb::arg("name"), nb::arg("inputs"), nb::arg("names"), "A graph of inputs (name, kind, qualified name) alone: what AotGraph needs to know of a program.");
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
      .def_prop_ro("symbols", [](const aot::Function& self) {
        nb::dict d;
        for (const auto& [name, value] : self.joint().symbols) d[name.c_str()] = value;
        return d;
      }, "Sizes that are expressions, with their numbers when the graphs were recorded; empty when all are numbers.")
      .def_prop_ro("guards", [](const aot::Function& self) {
        std::vector<std::string> texts;
        for (const auto& g : self.joint().guards) texts.push_back(g.text());
        return texts;
      }, "What must hold of the symbols in a run.")
      .def_prop_ro("static_because", [](const aot::Function& self) { return self.joint().static_because; }, "Why symbols of the captured graph have become numbers.")
      .def_prop_ro("primals", &primals_of)
      .def_prop_ro("outputs", &outputs_of);
  nb::class_<aot::Specialized>(m, "AotGraph", "A captured graph to call: differentiated ahead of time for each kind of inputs when they first come.")
      .def("__init__", [](aot::Specialized* self, const ir::Graph& graph, std::string name, const std::string& partition, nb::object backend, nb::object program, nb::object program_end, nb::object location, bool accumulates) {
        aot::FunctionOptions options;
        options.name = std::move(name);
        options.partition = partition_from(partition);
        options.takes_symbols = nb::isinstance<nb::str>(backend);   // fx graphs of a Python compiler are at numbers
        options.compile = options.takes_symbols ? backends::compile_halves(nb::cast<std::string>(backend)) : compile_by_python(std::move(backend));
        options.sink = debug::process_sink();
        if (!program.is_none()) {
          options.program = program_of(std::move(program));
          if (!program_end.is_none())
            options.program_end = [end = std::make_shared<Held>(std::move(program_end))] {
              nb::gil_scoped_acquire gil;
              PyObject *type = nullptr, *value = nullptr, *trace = nullptr;   // of the program, when it has raised
              PyErr_Fetch(&type, &value, &trace);
              if (nb::object done = nb::steal(PyObject_CallNoArgs(end->object.ptr())); !done.is_valid()) PyErr_WriteUnraisable(end->object.ptr());
              PyErr_Restore(type, value, trace);
            };
          auto held = std::make_shared<Held>(location);
          if (!location.is_none()) options.location = [held] { return nb::cast<PythonLocation&>(held->object).here(); };
          options.accumulates = accumulates;
        }
        new (self) aot::Specialized(graph, std::move(options));
      }, nb::arg("graph"), nb::arg("name") = "model", nb::arg("partition") = "min_cut", nb::arg("backend") = "eager", nb::arg("program") = nb::none(), nb::arg("program_end") = nb::none(), nb::arg("location") = nb::none(), nb::arg("accumulates") = false,
         nb::sig("def __init__(self, graph: Graph, name: str = 'model', partition: str = 'min_cut', backend: str | collections.abc.Callable[[Graph, list], collections.abc.Callable[[list], collections.abc.Sequence]] = 'eager', program: collections.abc.Callable[[list], collections.abc.Sequence] | None = None, program_end: collections.abc.Callable[[], None] | None = None, location: object = None, accumulates: bool = False) -> None"),
         "``backend``: one of the table by name, or a function (graph, example inputs) -> function of a list of inputs, called for forward and, at its first run, for backward.")
      .def("find", [](aot::Specialized& self, nb::object inputs) {
        const auto values = to_ivalues(inputs);
        return unwrap(unlocked([&] { return self.find(values); }));
      }, nb::arg("inputs"), "The function for inputs like these, made now if there is none.")
      .def("__call__", [](aot::Specialized& self, nb::args inputs) { return run(self, nb::borrow(inputs), false); }, nb::sig("def __call__(self, *inputs: object) -> tuple"))
      .def("run", [](aot::Specialized& self, nb::object inputs) { return run(self, std::move(inputs), true); }, nb::arg("inputs"), nb::sig("def run(self, inputs: list) -> tuple"),
           "Runs on a list of inputs, which it empties so that they are freed at their last use.")
      .def_prop_ro("functions", &aot::Specialized::functions);
  nb::class_<aot::BySize>(m, "AotBySize", "A program with symbolic sizes to call: recorded once for all sizes where that is possible, else for each set that comes.")
      .def("__init__", [](aot::BySize* self, std::vector<size_t> read, const std::vector<std::pair<size_t, size_t>>& symbols, std::string static_because, nb::callable record_symbolic, nb::callable record, const std::string& backend) {
        aot::FunctionOptions options;
        options.compile = backends::compile_halves(backend);
        options.sink = debug::process_sink();
        new (self) aot::BySize(sized_program(std::move(read), symbols, std::move(static_because), std::move(record_symbolic), std::move(record)), std::move(options));
      }, nb::arg("read"), nb::arg("symbols"), nb::arg("static_because"), nb::arg("record_symbolic"), nb::arg("record"), nb::arg("backend"),
         "``read``: inputs that come as a tensor and are taken as its number; ``symbols``: input and dimension that show each one.")
      .def("run", [](aot::BySize& self, nb::list inputs) -> nb::object {
        std::vector<IValue> values = to_ivalues(inputs);
        const auto outputs = unlocked([&] { return self.run(values); });
        return outputs ? tuple_of(*outputs) : nb::none();
      }, nb::arg("inputs"), nb::sig("def run(self, inputs: list) -> tuple | None"), "None: so many sets of sizes have come that another graph would not be worth it.")
      .def_prop_ro("static_because", &aot::BySize::static_because, "Why recordings are for one set of sizes each; empty: they are not.")
      .def_prop_ro("symbolic", &aot::BySize::symbolic, "What was recorded for all sizes.")
      .def_prop_ro("by_size", &aot::BySize::count_by_size, "How many recordings are for one set of sizes.");
}

}  // namespace cutaway::bindings
