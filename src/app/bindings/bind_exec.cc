#include <cstdint>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/exec/forward_backward.h"
#include "core/exec/interpreter.h"
#include "core/exec/node_place.h"
#include "core/ir/text.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using c10::IValue;
using Hook = std::optional<nb::callable>;

nb::list to_list(const std::vector<IValue>& values) {
  nb::list out;
  for (const IValue& v : values) out.append(from_ivalue(v));
  return out;
}
nb::tuple to_tuple(const std::vector<IValue>& values) { return nb::tuple(to_list(values)); }

/// Python's hooks as ours. They are called without the GIL and take it.
exec::Hooks hooks_from(const exec::Program& program, const Hook& before, const Hook& after) {
  exec::Hooks hooks;
  if (before)
    hooks.before = [&program, &before](size_t position, const ir::Node& node, const std::vector<IValue>& args) {
      nb::gil_scoped_acquire gil;
      (*before)(position, ir::print_node(program.graph(), node), to_list(args));
    };
  if (after)
    hooks.after = [&program, &after](size_t position, const ir::Node& node, std::vector<IValue>& results) {
      nb::gil_scoped_acquire gil;
      nb::object replaced = (*after)(position, ir::print_node(program.graph(), node), to_list(results));
      if (!replaced.is_none()) results = to_ivalues(replaced);
    };
  return hooks;
}

/// Runs f without the GIL; an exception gets a note that names the node that raised it, and the user's line.
template <class F> auto run_unlocked(const exec::Program& program, F&& f) {
  std::exception_ptr raised;
  {
    nb::gil_scoped_release release;
    try {
      return f();
    } catch (...) {
      raised = std::current_exception();
    }
  }
  const int64_t position = exec::Program::error_position();
  const ir::Node* node = position < 0 ? nullptr : exec::op_at(program.graph(), static_cast<size_t>(position));
  if (!node) std::rethrow_exception(raised);
  raise_with_note(raised, "raised by op " + std::to_string(position) + " of the graph: " + exec::describe_node(program.graph(), *node));
}

nb::tuple run_program(const exec::Program& program, nb::object inputs, bool boxed, const Hook& before, const Hook& after) {
  std::vector<IValue> values = to_ivalues(inputs);
  if (boxed) inputs.attr("clear")();   // so that the run holds the only references
  inputs.reset();
  const exec::Hooks hooks = hooks_from(program, before, after);
  exec::RunOptions options;
  if (before || after) options.hooks = &hooks;
  return to_tuple(run_unlocked(program, [&] { return program.run(values, options); }));
}

exec::Program prepare(const ir::Graph& graph) { return unwrap(exec::Program::prepare(graph)); }

nb::object run_fwd_maybe_bwd(const ir::Graph& graph, nb::handle inputs, bool only_fwd, bool disable_clone, uint64_t seed) {
  const exec::Program program = prepare(graph);
  const std::vector<IValue> values = to_ivalues(inputs);
  const exec::RunResults results = run_unlocked(program, [&] {
    return exec::run_fwd_maybe_bwd(exec::runnable(program), values, {.only_forward = only_fwd, .loss = exec::Loss::mean, .disable_clone = disable_clone}, seed);
  });
  if (only_fwd) return to_tuple(results.outputs);
  return to_list(exec::collect_results(results, values, graph.inputs));
}

}  // namespace

void bind_exec(nb::module_& m) {
  nb::class_<exec::Program>(m, "Program", "A graph made ready to run many times: operators resolved, literals converted, last uses known.")
      .def("__init__", [](exec::Program* self, const ir::Graph& graph) { new (self) exec::Program(prepare(graph)); }, nb::arg("graph"))
      .def("__call__", [](const exec::Program& self, nb::args inputs) { return run_program(self, nb::borrow(inputs), false, {}, {}); },
           nb::sig("def __call__(self, *inputs: object) -> tuple"), "Runs on these inputs. The outputs are always a tuple, one entry for each output of the graph.")
      .def("run", &run_program, nb::arg("inputs"), nb::arg("boxed") = false, nb::arg("before") = nb::none(), nb::arg("after") = nb::none(),
           nb::sig("def run(self, inputs: list, boxed: bool = False, before: collections.abc.Callable[[int, str, list], None] | None = None, "
                   "after: collections.abc.Callable[[int, str, list], list | None] | None = None) -> tuple"),
           "Runs on a list of inputs, which boxed empties so that inputs are freed at their last use. before(position, node, arguments) and\n"
           "after(position, node, results) are called around each operator; a list that after returns replaces the results.")
      // Never changes, so that a copy is the same one; run_fwd_maybe_bwd copies what it runs.
      .def("__deepcopy__", [](nb::object self, nb::handle) { return self; }, nb::arg("memo"));
  m.def("graph_run", [](const ir::Graph& graph, nb::object inputs, bool boxed, const Hook& before, const Hook& after) {
      return run_program(prepare(graph), std::move(inputs), boxed, before, after);
    }, nb::arg("graph"), nb::arg("inputs"), nb::arg("boxed") = false, nb::arg("before") = nb::none(), nb::arg("after") = nb::none(),
    "Program(graph).run(…) for a graph that runs once.");
  m.def("graph_run_fwd_maybe_bwd", &run_fwd_maybe_bwd, nb::arg("graph"), nb::arg("inputs"), nb::arg("only_fwd") = false, nb::arg("disable_clone") = false, nb::arg("seed") = 1337,
        "Runs a graph on clones of its inputs, backward too where an output requires it, always from the same random state.\n"
        "Gives the outputs (only_fwd) or a list: outputs, None, gradients of parameters, parameters, buffers, gradients of the other inputs.");
  m.def("infer_types", [](const ir::Graph& graph) {
      nb::gil_scoped_release release;   // shape rules in Python take it when they run
      auto typed = exec::infer_types(graph);
      return unwrap(std::move(typed));
    }, nb::arg("graph"), "The graph with the type of every value found anew from its inputs' types, by running it on fake tensors.");
}

}  // namespace cutaway::bindings
