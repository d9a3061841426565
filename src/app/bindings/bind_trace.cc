#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "app/bindings/bindings.h"
#include "app/bindings/python_location.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/exec/size_guards.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"
#include "core/trace/symbolic.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using InputTuple = std::tuple<std::string, std::string, std::string>;   // name, kind, qualified name

ir::InputKind kind_from(const std::string& word) {
  if (word == "user") return ir::InputKind::user;
  if (word == "parameter") return ir::InputKind::parameter;
  if (word == "buffer") return ir::InputKind::buffer;
  if (word == "constant") return ir::InputKind::constant;
  throw ErrorException({.what = "unknown kind of input: " + word, .hint = "one of user, parameter, buffer, constant"});
}
trace::Where where_from(const std::string& word) {
  if (word == "above") return trace::Where::above_autograd;
  if (word == "below") return trace::Where::below_autograd;
  throw ErrorException({.what = "unknown place to record: " + word, .hint = "\"above\" or \"below\" autograd"});
}

// A context manager over trace::FakeMode, which must end on the thread that began it.
struct PythonFakeMode {
  std::optional<trace::FakeMode> mode;
};

nb::tuple record(nb::callable f, nb::list inputs, const std::vector<InputTuple>& names, const std::string& where, bool fake, std::string graph_name, PythonLocation* location) {
  trace::RecordOptions options;
  options.where = where_from(where);
  options.graph_name = std::move(graph_name);
  for (const auto& [name, kind, qualified] : names) options.input_names.push_back({name, kind_from(kind), qualified});
  if (location) {
    options.location = [location] { return location->here(); };
    options.place = [location] { return location->place(); };
  }
  std::vector<c10::IValue> values;
  for (nb::handle h : inputs) values.push_back(to_ivalue(h));
  std::optional<trace::FakeMode> mode;
  if (fake) mode.emplace();
  std::vector<at::Tensor> constants;
  auto graph = unwrap(trace::record(
      [&](std::vector<c10::IValue>&) {
        std::vector<c10::IValue> outputs;
        for (nb::handle h : nb::list(f())) outputs.push_back(to_ivalue(h));
        return outputs;
      },
      std::move(values), std::move(options), &constants));
  return nb::make_tuple(std::move(graph), std::move(constants));
}

using SymbolTuple = std::tuple<std::string, int64_t>;   // name, number

/// `at` records at the numbers that it is given and gives (graph, constants). A Python exception means that the program does not take
/// these sizes, except at the symbols' own numbers, where it is the program's.
nb::tuple record_symbolic(nb::callable at, const std::vector<SymbolTuple>& named) {
  std::vector<symbolic::Symbol> symbols;
  for (const auto& [name, value] : named) symbols.push_back({name, value});
  bool is_first = true;
  trace::ConstantNumbers numbers;
  std::vector<at::Tensor> first_constants;
  const auto record_at = [&](const std::vector<int64_t>& values) -> base::Result<symbolic::Recording> {
    const bool must_work = std::exchange(is_first, false);
    try {
      nb::tuple made = nb::cast<nb::tuple>(at(values));
      symbolic::Recording r;
      r.graph = nb::cast<ir::Graph&>(made[0]);
      std::vector<at::Tensor> constants;
      for (nb::handle h : made[1]) constants.push_back(to_ivalue(h).toTensor());
      r.constants = numbers.of(constants);
      if (must_work) first_constants = std::move(constants);
      return r;
    } catch (const nb::python_error& e) {
      if (must_work || e.matches(PyExc_KeyboardInterrupt)) throw;
      return base::Error{.what = nb::cast<std::string>(nb::str(e.value()))};
    }
  };
  auto made = unwrap(trace::record_symbolic(record_at, std::move(symbols)));
  nb::dict statics;
  for (const auto& s : made.statics) statics[s.name.c_str()] = s.because;
  auto guards = unwrap(exec::SizeGuards::prepare(made.graph, std::move(made.guards)));
  return nb::make_tuple(std::move(made.graph), std::move(first_constants), std::move(guards), statics, made.recordings);
}

}  // namespace

void bind_trace(nb::module_& m) {
  nb::class_<PythonLocation>(m, "_PythonLocation")
      .def(nb::init<std::vector<std::string>>(), nb::arg("skipped_folders"))
      .def("enter_module", &PythonLocation::enter_module, nb::arg("path"))
      .def("leave_module", &PythonLocation::leave_module);

  nb::class_<PythonFakeMode>(m, "FakeMode", "While entered, operators on fake tensors and factory functions give fake tensors on this thread.")
      .def(nb::init<>())
      .def("__enter__", [](nb::object self) { nb::cast<PythonFakeMode&>(self).mode.emplace(); return self; })
      .def("__exit__", [](PythonFakeMode& self, nb::args) { self.mode.reset(); });

  m.def("make_fake", [](const at::Tensor& like, std::optional<std::string> device) {
    return device ? trace::make_fake(like, c10::Device(*device)) : trace::make_fake(like);
  }, nb::arg("like"), nb::arg("device") = nb::none(), "A tensor with the metadata of `like` and no data, said to be on `device` (its own by default).");
  m.def("make_fake_of_size", [](const at::Tensor& like, const std::vector<int64_t>& sizes) { return trace::make_fake(like, sizes); }, nb::arg("like"), nb::arg("sizes"),
        "A fake of `like` with other sizes; its dimensions lie in memory in the same order.");
  m.def("make_fakes", &trace::make_fakes, nb::arg("like"), "Fakes of several tensors that share storages as they do.");
  m.def("is_fake", [](nb::handle h) { return is_tensor(h.ptr()) && trace::is_fake(unwrap_tensor(h.ptr())); }, nb::arg("value"));
  m.def("_require_backward_device", &trace::require_backward_device, nb::arg("tensors"));
  m.def("shape_counters", [] {
    const auto c = trace::shape_counters();
    nb::dict d;
    d["own_rule"] = c.own_rule;
    d["cpp_meta"] = c.cpp_meta;
    d["dispatcher"] = c.dispatcher;
    d["memo_hits"] = c.memo_hits;
    return d;
  }, "How often shapes were found by a rule of ours, torch's C++ meta kernels, the dispatcher, the memo.");
  m.def("dispatcher_operators", &trace::dispatcher_operators, "Operators whose shapes needed the dispatcher, most frequent first.");
  m.def("shape_rule_names", &trace::shape_rule_names);
  nb::class_<exec::SizeGuards>(m, "SizeGuards", "What must hold of the inputs' sizes for a graph with symbolic sizes to be the program's.")
      .def("check", [](const exec::SizeGuards& g, nb::list inputs) {
        std::vector<c10::IValue> values;
        for (nb::handle h : inputs) values.push_back(to_ivalue(h));
        return g.check(values);
      }, nb::arg("inputs"), "Empty when they hold for these inputs, one for each input of the graph; else the first that does not, in words.")
      .def_prop_ro("texts", [](const exec::SizeGuards& g) {
        std::vector<std::string> texts;
        for (const auto& guard : g.guards()) texts.push_back(guard.text());
        return texts;
      })
      .def_prop_ro("reasons", [](const exec::SizeGuards& g) {
        std::vector<std::string> reasons;
        for (const auto& guard : g.guards()) reasons.push_back(guard.because);
        return reasons;
      });
  m.def("_record_symbolic", &record_symbolic, nb::arg("at"), nb::arg("symbols"));
  m.def("_refused_above_autograd", &trace::refused_above_autograd);
  m.def("_is_data_dependent", &trace::is_data_dependent_message, nb::arg("message"));
  m.def("_record", &record, nb::arg("f"), nb::arg("inputs"), nb::arg("names"), nb::arg("where"), nb::arg("fake"), nb::arg("graph_name"), nb::arg("location").none());
}

}  // namespace cutaway::bindings
