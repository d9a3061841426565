#include "app/composition/graph_compilers.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "app/composition/size_tuples.h"
#include "compiler/backends/backend.h"
#include "compiler/frames/graph_functions.h"
#include "compiler/guards/tensor_object.h"
#include "core/capabilities/capabilities.h"
#include "core/debug/events.h"
#include "core/debug/process.h"
#include "core/ir/text.h"

namespace nb = nanobind;

namespace cutaway::composition {

using bytecode::ObjectRef;

namespace {
nb::object given(const ObjectRef& o) { return nb::borrow(o.get()); }
}  // namespace

std::shared_ptr<frames::GraphFunction> compile_program(frames::CapturedGraph g) {
  auto program = exec::Program::prepare(g.graph);
  if (!program.ok()) {
    nb::object error = nb::module_::import_("cutaway._native").attr("Error");
    PyErr_SetString(error.ptr(), program.error().text().c_str());
    return nullptr;
  }
  return frames::make_program_graph(std::move(program).value(), g.name);
}

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

}  // namespace cutaway::composition
