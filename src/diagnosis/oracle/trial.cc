#include <cstdint>

#include "diagnosis/oracle/trial.h"

#include "core/base/json.h"
#include "core/bundle/signature_json.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"

namespace cutaway::oracle {
namespace {

using base::Json;
constexpr const char* kTasks[] = {"run", "record", "retype", "compact", "analyze"};
constexpr const char* kOutcomes[] = {"pass", "failure", "eager_fails", "invalid", "done"};

template <size_t N> int index_of(const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<int>(i);
  return -1;
}

Json texts(const std::vector<std::string>& list) { return Json::Array(list.begin(), list.end()); }
Json texts(const std::map<std::string, std::string>& by_name) { return Json::Object(by_name.begin(), by_name.end()); }

// Inputs travel inside a manifest, so that their JSON has one reader and one writer.
std::string inputs_text(std::vector<bundle::InputRef> inputs) {
  bundle::Manifest m;
  m.inputs = std::move(inputs);
  return bundle::manifest_to_json(m, {});
}
base::Result<std::vector<bundle::InputRef>> inputs_from(const std::string& text) {
  CUTAWAY_TRY_ASSIGN(bundle::ParsedManifest m, bundle::manifest_from_json(text, "inputs"));
  return std::move(m.manifest.inputs);
}

}  // namespace

std::string trial_to_json(const Trial& t) {
  ir::PrintOptions print;
  print.header = true;
  return Json(Json::Object{{"task", kTasks[static_cast<int>(t.task)]}, {"graph", ir::print(t.subject.graph, print)},
               {"manifest", bundle::manifest_to_json(t.subject.manifest, ir::digest(t.subject.graph))}, {"store", t.store}, {"accuracy", t.accuracy},
               {"only_forward", t.only_forward}, {"is_trusted", t.is_trusted}, {"tolerance", t.tolerance}, {"threads", t.threads}, {"before", texts(t.before)}, {"switches", t.switches.to_json()}, {"every_node", t.every_node}, {"budget_s", t.budget_s}, {"progress", t.progress}, {"part_timeout_s", t.part_timeout_s}, {"dead_parts", texts(t.dead_parts)}}).text();
}

base::Result<Trial> trial_from_json(std::string_view text) {
  auto parsed = Json::parse(text, "trial");
  if (!parsed.ok()) return base::Error{"not a trial", "", parsed.error().text(), "", ""};
  const Json& j = *parsed;
  for (const char* key : {"task", "graph", "manifest", "store", "accuracy", "only_forward", "is_trusted", "tolerance", "threads"})
    if (!j.find(key)) return base::Error{"not a trial", "", std::string("it has no \"") + key + "\"", "", ""};
  Trial t;
  const int task = index_of(kTasks, j.text_or("task"));
  if (task < 0) return base::Error{"unknown task", "trial", "", "", ""};
  t.task = static_cast<Trial::Task>(task);
  CUTAWAY_TRY_ASSIGN(t.subject.graph, ir::parse(j.text_or("graph"), "trial"));
  CUTAWAY_TRY_ASSIGN(bundle::ParsedManifest m, bundle::manifest_from_json(j.text_or("manifest"), "trial"));
  t.subject.manifest = std::move(m.manifest);
  t.store = j.text_or("store");
  t.accuracy = j.text_or("accuracy");
  t.only_forward = j.flag_or("only_forward");
  t.is_trusted = j.flag_or("is_trusted");
  t.tolerance = j.number_or("tolerance", t.tolerance);
  t.threads = static_cast<int>(j.integer_or("threads"));
  t.before = j.texts_or_none("before");
  CUTAWAY_TRY_ASSIGN(t.switches, capabilities::Switches::from_json(j.text_or("switches")));
  t.every_node = j.flag_or("every_node", t.every_node);
  t.budget_s = j.number_or("budget_s", t.budget_s);
  t.progress = j.text_or("progress");
  t.part_timeout_s = j.integer_or("part_timeout_s", t.part_timeout_s);
  t.dead_parts = j.texts_by_name_or_none("dead_parts");
  return t;
}

std::string result_to_json(const TrialResult& r) {
  Json j = Json::Object{{"outcome", kOutcomes[static_cast<int>(r.outcome)]}, {"signature", bundle::signature_json(r.signature)}, {"message", r.message}, {"verdict", r.verdict},
            {"user_frame", r.user_frame}, {"eager_ms", r.eager_ms}, {"compile_ms", r.compile_ms}, {"run_ms", r.run_ms}, {"new_kernels", r.new_kernels}};
  if (!r.graph.empty()) j["graph"] = r.graph;
  if (!r.suspects.empty()) j["suspects"] = texts(r.suspects);
  if (!r.options.empty()) j["options"] = texts(r.options);
  if (r.analysis) j["analysis"] = analysis_to_json(*r.analysis).text();
  if (!r.inputs.empty()) j["inputs"] = inputs_text(r.inputs);
  if (!r.values.empty()) {
    std::vector<std::string> names;
    std::vector<bundle::InputRef> refs;
    for (const auto& [name, ref] : r.values) { names.push_back(name); refs.push_back(ref); }
    j["value_names"] = texts(names);
    j["values"] = inputs_text(std::move(refs));
  }
  return j.text();
}

base::Result<TrialResult> result_from_json(std::string_view text) {
  auto parsed = Json::parse(text, "trial result");
  if (!parsed.ok()) return base::Error{"not a trial result", "", parsed.error().text(), "", ""};
  const Json& j = *parsed;
  const Json* signature = j.find("signature");
  if (!j.find("outcome") || !signature) return base::Error{"not a trial result", "", "it has no outcome, or no signature", "", ""};
  TrialResult r;
  const int outcome = index_of(kOutcomes, j.text_or("outcome"));
  if (outcome < 0) return base::Error{"unknown outcome", "trial result", "", "", ""};
  r.outcome = static_cast<TrialResult::Outcome>(outcome);
  r.signature = bundle::signature_from(*signature);
  r.message = j.text_or("message");
  r.verdict = j.text_or("verdict");
  r.user_frame = j.text_or("user_frame");
  r.graph = j.text_or("graph");
  r.eager_ms = j.number_or("eager_ms");
  r.compile_ms = j.number_or("compile_ms");
  r.run_ms = j.number_or("run_ms");
  r.new_kernels = j.integer_or("new_kernels");
  r.suspects = j.texts_or_none("suspects");
  r.options = j.texts_by_name_or_none("options");
  if (j.find("analysis")) {
    CUTAWAY_TRY_ASSIGN(const Json analysis, Json::parse(j.text_or("analysis"), "analysis"));
    CUTAWAY_TRY_ASSIGN(r.analysis, analysis_from_json(analysis, "analysis"));
  }
  if (j.find("inputs")) { CUTAWAY_TRY_ASSIGN(r.inputs, inputs_from(j.text_or("inputs"))); }
  if (j.find("values")) {
    const std::vector<std::string> names = j.texts_or_none("value_names");
    CUTAWAY_TRY_ASSIGN(std::vector<bundle::InputRef> refs, inputs_from(j.text_or("values")));
    if (names.size() != refs.size()) return base::Error{"names and values differ in number", "trial result", "", "", ""};
    for (size_t i = 0; i < names.size(); ++i) r.values.emplace(names[i], std::move(refs[i]));
  }
  return r;
}

}  // namespace cutaway::oracle
