// The judge for Python's own callables: what level 4 of the wrapper asks. The rule is diagnosis/compare/judge.h's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/state_dict.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/exec/region_state.h"
#include "core/tensor/make.h"
#include "diagnosis/compare/judge.h"
#include "diagnosis/repro/reference.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using Values = std::vector<c10::IValue>;

/// Calls f with a list of inputs. The caller keeps f, and does not hold the GIL.
exec::Runnable runnable(nb::handle f) {
  return [f](Values& inputs) {
    nb::gil_scoped_acquire gil;
    nb::list list;
    for (const c10::IValue& v : inputs) list.append(from_ivalue(v));
    inputs.clear();
    const nb::object out = f(list);
    if (PyList_Check(out.ptr()) || PyTuple_Check(out.ptr())) return to_ivalues(out);
    return Values{to_ivalue(out)};
  };
}

struct PythonJudge {
  nb::object eager, fp64;
  Values inputs;
  exec::ForwardBackwardOptions options;
  exec::RandomStart start = 0;
  std::shared_ptr<compare::Judge> judge;

  exec::RunResults run(nb::handle f, const Values& values) const {
    const exec::Runnable call = runnable(f);
    nb::gil_scoped_release release;
    return exec::run_fwd_maybe_bwd(call, values, options, start);
  }
};

std::vector<at::Tensor> tensors_of(nb::handle list) {
  std::vector<at::Tensor> out;
  for (nb::handle h : list) out.push_back(unwrap_tensor(h.ptr()));
  return out;
}

void make(PythonJudge* self, nb::object eager, nb::object fp64, nb::list inputs, nb::list held, nb::list held_fp64, bool only_forward, nb::object backward_state,
          const std::map<std::string, std::string>& generators, double tolerance, bool ignore_non_fp, bool sees_layout) {
  new (self) PythonJudge{std::move(eager), std::move(fp64), to_ivalues(inputs), {}, unwrap(exec::random_start(0, generators)), nullptr};
  self->options.only_forward = only_forward;
  self->options.held = tensors_of(held);
  if (!backward_state.is_none()) self->options.backward_state = unwrap(exec::prepare_state(state_from(nb::cast<nb::dict>(backward_state))));
  compare::JudgeRules rules;
  rules.tolerance = tolerance;
  rules.ignore_non_fp = ignore_non_fp;
  rules.sees_layout = sees_layout;
  const exec::Runnable call = runnable(self->eager), call_wide = runnable(self->fp64);
  const exec::ForwardBackwardOptions options = self->options;
  exec::ForwardBackwardOptions options_wide = options;
  options_wide.backward_state.reset();
  options_wide.held = tensors_of(held_fp64);
  const exec::RandomStart start = self->start;
  const bool has_fp64 = !self->fp64.is_none();
  nb::gil_scoped_release release;
  compare::Eager run = [call, options, start](const Values& values) { return exec::run_fwd_maybe_bwd(call, values, options, start); };
  std::function<exec::RunResults()> run_wide;
  if (has_fp64)
    run_wide = [&] {
      exec::StateScope no_autocast(exec::autocast_off());
      return exec::run_fwd_maybe_bwd(call_wide, tensor::cast_to_fp64(self->inputs), options_wide, start);
    };
  self->judge = std::make_shared<compare::Judge>(std::move(run), self->inputs, run_wide, rules);
}

nb::dict signature(const compare::Verdict& v) { return signature_dict(repro::signature_of(v)); }

}  // namespace

void bind_judge(nb::module_& m) {
  nb::class_<exec::RunResults>(m, "RunResults", "What a run left behind: outputs, gradients, inputs.");
  nb::class_<PythonJudge>(m, "Judge", "What eager does with some inputs, and the fp64 run of it: compares runs of compiled code with that.")
      .def("__init__", &make, nb::arg("eager"), nb::arg("fp64").none(), nb::arg("inputs"), nb::kw_only(), nb::arg("held") = nb::list(), nb::arg("held_fp64") = nb::list(),
           nb::arg("only_forward") = false, nb::arg("backward_state") = nb::none(), nb::arg("generators") = std::map<std::string, std::string>(), nb::arg("tolerance") = 1e-3, nb::arg("ignore_non_fp") = false, nb::arg("sees_layout") = true,
           "Runs eager(list) and raises what it raises; an fp64(list) that raises is as none. `held` are tensors that the functions hold themselves, `held_fp64` those\n"
           "of fp64, in the same order. `generators` are as generators() gives them; `backward_state` as a manifest has it, None: as around the call.")
      .def("run", [](const PythonJudge& j, nb::handle compiled) { return j.run(compiled, j.inputs); }, nb::arg("compiled"), "Runs compiled(list) on the same inputs, from the same random state.")
      .def("repeat_eager", [](const PythonJudge& j) { nb::gil_scoped_release release; return j.judge->repeat_eager(); }, "Eager once more, by the same rules.")
      .def("judge", [](const PythonJudge& j, const exec::RunResults& r) { nb::gil_scoped_release release; return j.judge->judge(r); }, nb::arg("results"))
      .def_prop_ro("fp64_problem", [](const PythonJudge& j) { return j.judge->fp64_problem(); }, "Why there is no fp64 run; empty: there is one, or none was asked for.");
  m.def("accuracy_signature", &signature, nb::arg("verdict"), "The failure signature of a verdict that is false.");
}

}  // namespace cutaway::bindings
