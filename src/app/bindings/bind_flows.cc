// What the command does, from inside of a Python program.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/flows/findings.h"
#include "app/flows/minify_flow.h"
#include "app/flows/progress_line.h"
#include "diagnosis/report/notebook.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace cutaway::bindings {
namespace {

/// Ctrl-C in a call that holds no GIL: asked for now and then, raised when the call has ended.
class PythonSignals {
 public:
  bool came() {
    if (signal_) return true;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() < 0) signal_.emplace();
    return signal_.has_value();
  }
  /// With the GIL.
  void raise_if_any() {
    if (!signal_) return;
    signal_->restore();
    throw nb::python_error();
  }

 private:
  std::optional<nb::python_error> signal_;
};

std::string minify(const std::string& bundle, const std::string& output, const std::string& backend, const std::string& accuracy, int jobs, std::optional<double> timeout, double time_budget,
                   const std::string& match, bool trust) {
  flows::MinifyOptions options;
  options.bundle = bundle;
  options.output = output;
  options.backend = backend;
  options.accuracy = accuracy;
  options.jobs = jobs;
  if (timeout) options.timeout_ms = static_cast<int64_t>(*timeout * 1000);
  options.time_budget_s = time_budget;
  options.match = match;
  options.is_trusted = trust;
  PythonSignals signals;
  flows::ProgressLine progress;
  options.on_progress = [&](const minify::Progress& p) { progress.show(p); return !signals.came(); };
  options.on_step = [&](const std::string& text) { progress.say(text); };
  options.is_interrupted = [&] { return signals.came(); };
  const flows::Programs programs = unwrap(flows::find_programs_from_python(nb::cast<std::string>(nb::module_::import_("sys").attr("executable"))));
  auto report = [&] {
    nb::gil_scoped_release release;
    return flows::minify_bundle(programs, options);
  }();
  signals.raise_if_any();
  const flows::MinifyReport done = unwrap(std::move(report));
  if (done.exit_code != 0) throw ErrorException({.what = done.refusal()});
  return done.to_json();
}

std::string explain_text(const std::string& answer, const std::string& form) {
  const report::Findings findings = flows::explain_findings(unwrap(base::Json::parse(answer, "explain")));
  return form == "sarif" ? report::sarif_text(findings, flows::findings_root(), CUTAWAY_VERSION) : report::github_text(findings, flows::findings_root());
}

}  // namespace

void bind_flows(nb::module_& m) {
  m.def("minify", &minify, "bundle"_a, "output"_a, "backend"_a, "accuracy"_a, "jobs"_a, "timeout"_a.none(), "time_budget"_a, "match"_a, "trust"_a,
        "`cutaway minify` in this process; what its --json prints. Empty texts are as recorded, or as the command has them. Ctrl-C is raised.");
  m.def("explain_text", &explain_text, "answer"_a, "form"_a, "What `cutaway explain --json` prints as \"sarif\" or \"github\".");
  m.def("explain_html", [](const std::string& answer) { return report::explain_for_notebook(unwrap(base::Json::parse(answer, "explain"))); }, "answer"_a, "What ExplainOutput.to_json() writes, for a notebook.");
  m.def("page_html", &report::page_for_notebook, "page"_a, "A whole page inside a notebook: in a frame that runs nothing.");
}

}  // namespace cutaway::bindings
