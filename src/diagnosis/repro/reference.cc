#include "diagnosis/repro/reference.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <set>

#include "compiler/backends/backend.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "core/exec/interpreter.h"
#include "core/exec/region_state.h"
#include "core/tensor/make.h"

namespace cutaway::repro {

base::Result<Surroundings> prepare_surroundings(const bundle::Manifest& m) {
  Surroundings s;
  CUTAWAY_TRY(exec::check_process_settings(m.process));
  s.process = m.process;
  CUTAWAY_TRY_ASSIGN(s.state, exec::prepare_state(m.state));
  if (m.backward_state) {
    CUTAWAY_TRY_ASSIGN(s.backward, exec::prepare_state(*m.backward_state));
  }
  CUTAWAY_TRY_ASSIGN(s.random, exec::random_start(m.seed, m.generators));
  return s;
}

std::map<std::string, std::string> extra_for_backend(const ir::Graph& graph, const bundle::Manifest& m, const ir::Graph& whole) {
  std::map<std::string, std::string> extra = m.extra;
  std::set<std::string> parameters;
  for (size_t i = 0; i < m.inputs.size() && i < whole.inputs.size(); ++i)
    if (m.inputs[i].kind != bundle::InputRef::Kind::literal && m.inputs[i].tensor.is_parameter) parameters.insert(whole.value(whole.inputs[i].value).name);
  std::vector<std::string> positions;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (parameters.count(graph.value(graph.inputs[i].value).name)) positions.push_back(std::to_string(i));
  extra["parameter_inputs"] = "[" + base::join(positions) + "]";
  if (const auto device = m.process.find("default_device"); device != m.process.end()) extra["default_device"] = base::Json(device->second).text();
  return extra;
}

exec::RunResults run_once(const oracle::Trial& trial, const Surroundings& around, const exec::Runnable& f, const Values& inputs, Passes passes) {
  exec::ForwardBackwardOptions options;
  options.only_forward = passes == Passes::forward || trial.only_forward || trial.subject.manifest.stage == "aot";
  options.backward_state = around.backward;
  return exec::run_fwd_maybe_bwd(f, inputs, options, around.random);
}

base::Result<std::shared_ptr<compare::Judge>> make_judge(const oracle::Trial& trial, const Surroundings& around, const ir::Graph& graph, const Values& inputs, const ReferenceOptions& options) {
  const bundle::Manifest& m = trial.subject.manifest;
  CUTAWAY_TRY_ASSIGN(exec::Program prepared, exec::Program::prepare(graph));
  auto program = std::make_shared<exec::Program>(std::move(prepared));
  compare::JudgeRules rules;
  rules.tolerance = trial.tolerance;
  rules.is_strict = trial.accuracy == "strict";
  auto backend = backends::find_backend(m.backend.empty() ? "eager" : m.backend);
  rules.sees_layout = options.sees_layout && m.stage != "aot" && (!backend.ok() || (*backend)->row.differentiates);
  std::vector<std::string> names;
  for (const ir::Input& input : graph.inputs) names.push_back(graph.value(input.value).name);
  compare::Eager eager = [&trial, &around, program, passes = options.passes](const Values& values) { return run_once(trial, around, exec::runnable(*program), values, passes); };
  std::function<exec::RunResults()> fp64;
  if (options.has_fp64)
    fp64 = [&] {
      auto wide = exec::Program::prepare(tensor::cast_to_fp64(graph));
      TORCH_CHECK_VALUE(wide.ok(), wide.ok() ? "" : wide.error().text());
      exec::StateScope no_autocast(exec::autocast_off());
      Surroundings plain = around;
      plain.backward.reset();
      return run_once(trial, plain, exec::runnable(*wide), tensor::cast_to_fp64(inputs), options.passes);
    };
  return std::make_shared<compare::Judge>(std::move(eager), inputs, fp64, rules, std::move(names));
}

std::map<std::string, std::string> options_to_draw_as_eager(const ir::Graph& g, const bundle::Manifest& m) {
  const capabilities::Row* row = capabilities::find(m.backend);
  if (!row || row->option_for_eager_random.empty() || m.options.count(row->option_for_eager_random)) return {};
  bool draws = false;
  ir::for_each_node(g.body, [&](const ir::Node& n) {
    const auto name = n.kind == ir::Node::Kind::op ? ir::split_op_name(n.target) : std::nullopt;
    const auto handle = name ? c10::Dispatcher::singleton().findSchema({name->name, name->overload}) : std::nullopt;
    if (!handle) return;
    const auto tags = handle->getTags();
    draws = draws || std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
  });
  return draws ? std::map<std::string, std::string>{{row->option_for_eager_random, "true"}} : std::map<std::string, std::string>{};
}

bundle::FailureSignature signature_of(const compare::Verdict& v) {
  bundle::FailureSignature s;
  s.kind = "accuracy";
  s.stage = "backend";
  s.type = std::string(compare::aspect_name(v.aspect)) + (v.stats ? " of " + v.stats->dtype : "");
  s.message = v.reason;
  return s;
}

}  // namespace cutaway::repro
