// Trials, the worker's loop and the writing of repros, for Python. What Python raises is described by Python (cutaway._failure).
#include <cstdint>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/bindings/state_dict.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"
#include "core/base/json.h"
#include "core/bundle/signature_json.h"
#include "core/exec/process_settings.h"
#include "core/exec/random_state.h"
#include "core/ir/edit.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/trial.h"
#include "diagnosis/oracle/trust.h"
#include "diagnosis/repro/exception_facts.h"
#include "diagnosis/repro/trial_runner.h"
#include "diagnosis/repro/write_repro.h"
#include "diagnosis/worker/fork_server.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using Texts = std::map<std::string, std::string>;

// The Python exception inside a C++ one, if that is what it is. With the GIL.
nb::object python_exception(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (nb::python_error& e) {
    return nb::borrow(e.value());
  } catch (...) {
    return take_torch_python_error(p);
  }
}

void set_describer(nb::callable describe) {
  auto held = std::make_shared<nb::object>(describe);
  at_exit([held] { repro::set_exception_describer({}); held->reset(); });
  repro::set_exception_describer([held](std::exception_ptr p) -> std::optional<repro::ExceptionFacts> {
    nb::gil_scoped_acquire gil;
    try {
      if (!held->is_valid()) return std::nullopt;
      nb::object error = python_exception(p);
      if (!error.is_valid()) return std::nullopt;
      auto [type, message, trace, frame, is_memory, suspects, builds] = nb::cast<std::tuple<std::string, std::string, std::string, std::string, bool, std::vector<std::string>, int64_t>>((*held)(error));
      return repro::ExceptionFacts{std::move(type), std::move(message), std::move(trace), std::move(frame), is_memory, std::move(suspects), builds};
    } catch (nb::python_error& e) {   // no memory left to describe it with
      if (e.matches(PyExc_MemoryError)) return repro::ExceptionFacts{"MemoryError", "an allocation failed", "", "", true, {}};
      return repro::ExceptionFacts{"unknown exception", e.what(), "", "", false, {}};
    }
  });
}

std::string run_trial(const std::string& body) {
  nb::gil_scoped_release release;   // a backward pass may run, and Python backends take the lock themselves
  return repro::handle_request(body);
}

// Directories that the user's own modules come from, as the bundle says.
std::vector<std::string> python_path_of(const bundle::Manifest& m) {
  std::vector<std::string> found;
  const auto text = m.extra.find("python_path");
  if (text == m.extra.end()) return found;
  if (auto parsed = base::Json::parse(text->second, "python_path"); parsed.ok())
    if (auto* list = parsed->as<base::Json::Array>())
      for (const base::Json& item : *list)
        if (auto* path = item.as<std::string>()) found.push_back(*path);
  return found;
}

// `prepare`, when given, is called in the child before a trusted trial: it imports what the bundle names. `meanwhile` is called once, here, while the
// first trial runs: what later ones shall find done.
void serve_worker(int fd, bool is_trusted, nb::object prepare, nb::object meanwhile) {
  const auto in_parent = [&] {
    PyOS_AfterFork_Parent();
    const nb::object todo = std::exchange(meanwhile, nb::none());
    if (!todo.is_none()) todo();
  };
  worker::ForkHooks hooks{[] { PyOS_BeforeFork(); }, in_parent, [] { PyOS_AfterFork_Child(); }};
  const worker::Handler handler = [&](const std::string& body) {
    auto trial = oracle::trial_from_json(body);
    if (!trial.ok()) return run_trial(body);   // says what is wrong with it
    trial->is_trusted = trial->is_trusted && is_trusted;
    if (trial->is_trusted && !prepare.is_none()) {
      try {
        prepare(trial->subject.manifest.libraries, python_path_of(trial->subject.manifest));
      } catch (nb::python_error& e) {   // a module that is not there is no failure of a compiler
        oracle::TrialResult r;
        r.message = e.what();
        return oracle::result_to_json(r);
      }
    }
    nb::gil_scoped_release release;
    return oracle::result_to_json(repro::run_trial(*trial));
  };
  unwrap(worker::serve(fd, handler, hooks));
}

std::string text_of(nb::dict d, const char* key) { return d.contains(key) ? nb::cast<std::string>(d[key]) : std::string(); }
Texts texts_of(nb::dict d, const char* key) { return d.contains(key) ? nb::cast<Texts>(d[key]) : Texts(); }

}  // namespace

ir::RegionState state_from(nb::dict d) {
  ir::RegionState state;
  if (d.contains("grad_enabled")) state.grad_enabled = nb::cast<bool>(d["grad_enabled"]);
  if (d.contains("inference_mode")) state.inference_mode = nb::cast<bool>(d["inference_mode"]);
  if (d.contains("autocast"))
    for (nb::handle h : nb::list(d["autocast"])) {
      auto [device, enabled, dtype, cache] = nb::cast<std::tuple<std::string, bool, std::string, bool>>(h);
      auto named = ir::dtype_from_name(dtype);
      if (!named) throw ErrorException({.what = "unknown dtype " + dtype});
      state.autocast.push_back({unwrap(ir::Device::parse(device)), enabled, *named, cache});
    }
  return state;
}

nb::dict signature_dict(const bundle::FailureSignature& s) {
  nb::dict d;
  bundle::for_each_field(s, [&](const char* key, const std::string& text) { if (!text.empty()) d[key] = text; });
  return d;
}

namespace {

bundle::Manifest manifest_from(nb::dict d) {
  bundle::Manifest m;
  m.name = text_of(d, "name");
  m.stage = text_of(d, "stage");
  m.backend = text_of(d, "backend");
  if (d.contains("tracing_mode")) m.tracing_mode = text_of(d, "tracing_mode");
  m.accuracy = text_of(d, "accuracy");
  if (d.contains("state")) m.state = state_from(nb::cast<nb::dict>(d["state"]));
  if (d.contains("backward_state") && !d["backward_state"].is_none()) m.backward_state = state_from(nb::cast<nb::dict>(d["backward_state"]));
  m.process = texts_of(d, "process");
  m.generators = texts_of(d, "generators");
  if (d.contains("seed")) m.seed = nb::cast<uint64_t>(d["seed"]);
  if (d.contains("failure")) {
    nb::dict f = nb::cast<nb::dict>(d["failure"]);
    bundle::for_each_field(m.failure, [&](const char* key, std::string& text) { text = text_of(f, key); });
  }
  m.options = texts_of(d, "options");
  m.environment = texts_of(d, "environment");
  if (d.contains("libraries")) m.libraries = nb::cast<std::vector<std::string>>(d["libraries"]);
  m.versions = texts_of(d, "versions");
  m.hardware = texts_of(d, "hardware");
  m.extra = texts_of(d, "extra");
  return m;
}

nb::dict write_repro(const std::string& path, const ir::Graph& graph, nb::list inputs, nb::dict manifest, const std::vector<size_t>& parameters, uint64_t max_bytes) {
  std::vector<c10::IValue> values;
  for (nb::handle h : inputs) values.push_back(to_ivalue(h));
  bundle::Manifest m = manifest_from(manifest);
  auto written = [&] {
    nb::gil_scoped_release release;
    return repro::write_repro(path, graph, std::move(m), values, parameters, max_bytes);
  }();
  const repro::WrittenRepro report = unwrap(std::move(written));
  nb::dict d;
  d["bytes"] = report.bytes;
  d["seeded"] = report.seeded;
  d["script_problem"] = report.script_problem;
  return d;
}

nb::dict failure_signature(const std::string& type, const std::string& message, const std::string& user_frame, const std::string& stage, bool is_memory) {
  return signature_dict({.kind = is_memory ? "memory" : "exception", .stage = stage, .type = type, .op = oracle::operator_in(message), .signal = "", .message = oracle::normalise_message(message), .user_frame = user_frame});
}

}  // namespace

void bind_repro(nb::module_& m) {
  m.def("set_exception_describer", &set_describer, nb::arg("describe"), "describe(exception) gives (type, message, trace, user frame, is it memory, nodes that it points to, kernels built before it).");
  m.def("run_trial", &run_trial, nb::arg("trial"), "Runs one trial (JSON) in this process; returns its result (JSON). docs/formats/worker.md");
  m.def("serve_worker", &serve_worker, nb::arg("fd"), nb::arg("is_trusted"), nb::arg("prepare").none() = nb::none(), nb::arg("meanwhile").none() = nb::none(),
        "Serves trials on a socket until it closes, each in a forked child.");
  m.def("warm_up", [] { nb::gil_scoped_release release; repro::warm_up(); }, "Runs one small graph on one thread, so that children find everything loaded.");
  m.def("failure_signature", &failure_signature, nb::arg("type"), nb::arg("message"), nb::arg("user_frame"), nb::arg("stage"), nb::arg("is_memory"));
  m.def("write_repro", &write_repro, nb::arg("path"), nb::arg("graph"), nb::arg("inputs"), nb::arg("manifest"), nb::arg("parameters"), nb::arg("max_bytes"));
  m.def("checkpoint_path", [](const std::string& folder, const ir::Graph& g) { return repro::checkpoint_path(folder, g).string(); }, nb::arg("folder"), nb::arg("graph"),
        "Where the bundle of this graph goes: folder/checkpoints/<nodes>, or that and a number.");
  m.def("copy_newest", [](const std::string& bundle, const std::string& folder) { unwrap(repro::copy_newest(bundle, folder)); }, nb::arg("bundle"), nb::arg("folder"), "folder/repro becomes a copy of the bundle.");
  m.def("needs_trust", [](const std::string& path) { const bundle::Bundle b = unwrap(bundle::read_bundle(path)); return oracle::needs_trust(b.graph, b.manifest); }, nb::arg("path"),
        "What running this bundle does besides computing, in words: then commands take it with --trust only.");
  m.def("process_settings", &exec::process_settings_now, "Settings of the process that are not torch's defaults, by name.");
  m.def("generators", &exec::generators_now, "The state of the default random generator of each device in use, in hexadecimal digits.");
  m.def("count_nodes", [](const ir::Graph& g) { return ir::count_nodes(g); }, nb::arg("graph"), "A captured call counts as one.");
  m.def("operators", [](const ir::Graph& g) {
    std::vector<std::string> names;
    ir::for_each_node(g.body, [&](const ir::Node& n) { if (n.kind == ir::Node::Kind::op) names.push_back(n.target); });
    return names;
  }, nb::arg("graph"), "Operators of the graph in program order, in regions too.");
}

}  // namespace cutaway::bindings
