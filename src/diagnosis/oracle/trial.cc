#include <cstdint>

#include "diagnosis/oracle/trial.h"

#include <nlohmann/json.hpp>

#include "core/ir/edit.h"
#include "core/ir/text.h"

namespace cutaway::oracle {
namespace {

using Json = nlohmann::json;
constexpr const char* kTasks[] = {"run", "record", "retype", "compact", "analyze"};
constexpr const char* kOutcomes[] = {"pass", "failure", "eager_fails", "invalid", "done"};

template <size_t N> int index_of(const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<int>(i);
  return -1;
}

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

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

Json signature_json(const bundle::FailureSignature& s) {
  return {{"kind", s.kind}, {"stage", s.stage}, {"type", s.type}, {"op", s.op}, {"signal", s.signal}, {"message", s.message}, {"user_frame", s.user_frame}};
}
bundle::FailureSignature signature_from(const Json& j) {
  auto text = [&](const char* key) { return j.value(key, std::string()); };
  return {text("kind"), text("stage"), text("type"), text("op"), text("signal"), text("message"), text("user_frame")};
}

}  // namespace

std::string trial_to_json(const Trial& t) {
  ir::PrintOptions print;
  print.header = true;
  return dump({{"task", kTasks[static_cast<int>(t.task)]}, {"graph", ir::print(t.subject.graph, print)},
               {"manifest", bundle::manifest_to_json(t.subject.manifest, ir::digest(t.subject.graph))}, {"store", t.store}, {"accuracy", t.accuracy},
               {"only_forward", t.only_forward}, {"is_trusted", t.is_trusted}, {"tolerance", t.tolerance}, {"threads", t.threads}, {"before", t.before}, {"switches", t.switches}, {"every_node", t.every_node}, {"budget_s", t.budget_s}, {"progress", t.progress}, {"part_timeout_s", t.part_timeout_s}, {"dead_parts", t.dead_parts}});
}

base::Result<Trial> trial_from_json(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    Trial t;
    const int task = index_of(kTasks, j.at("task").get<std::string>());
    if (task < 0) return base::Error{"unknown task", "trial", "", "", ""};
    t.task = static_cast<Trial::Task>(task);
    CUTAWAY_TRY_ASSIGN(t.subject.graph, ir::parse(j.at("graph").get_ref<const std::string&>(), "trial"));
    CUTAWAY_TRY_ASSIGN(bundle::ParsedManifest m, bundle::manifest_from_json(j.at("manifest").get_ref<const std::string&>(), "trial"));
    t.subject.manifest = std::move(m.manifest);
    t.store = j.at("store").get<std::string>();
    t.accuracy = j.at("accuracy").get<std::string>();
    t.only_forward = j.at("only_forward").get<bool>();
    t.is_trusted = j.at("is_trusted").get<bool>();
    t.tolerance = j.at("tolerance").get<double>();
    t.threads = j.at("threads").get<int>();
    t.before = j.value("before", t.before);
    t.switches = j.value("switches", "");
    t.every_node = j.value("every_node", t.every_node);
    t.budget_s = j.value("budget_s", t.budget_s);
    t.progress = j.value("progress", t.progress);
    t.part_timeout_s = j.value("part_timeout_s", t.part_timeout_s);
    t.dead_parts = j.value("dead_parts", t.dead_parts);
    return t;
  } catch (const Json::exception& e) {
    return base::Error{"not a trial", "", e.what(), "", ""};
  }
}

std::string result_to_json(const TrialResult& r) {
  Json j = {{"outcome", kOutcomes[static_cast<int>(r.outcome)]}, {"signature", signature_json(r.signature)}, {"message", r.message}, {"verdict", r.verdict},
            {"user_frame", r.user_frame}, {"eager_ms", r.eager_ms}, {"compile_ms", r.compile_ms}, {"run_ms", r.run_ms}, {"new_kernels", r.new_kernels}};
  if (!r.graph.empty()) j["graph"] = r.graph;
  if (!r.suspects.empty()) j["suspects"] = r.suspects;
  if (!r.options.empty()) j["options"] = r.options;
  if (r.analysis) j["analysis"] = analysis_to_json(*r.analysis).text();
  if (!r.inputs.empty()) j["inputs"] = inputs_text(r.inputs);
  if (!r.values.empty()) {
    std::vector<std::string> names;
    std::vector<bundle::InputRef> refs;
    for (const auto& [name, ref] : r.values) { names.push_back(name); refs.push_back(ref); }
    j["value_names"] = names;
    j["values"] = inputs_text(std::move(refs));
  }
  return dump(j);
}

base::Result<TrialResult> result_from_json(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    TrialResult r;
    const int outcome = index_of(kOutcomes, j.at("outcome").get<std::string>());
    if (outcome < 0) return base::Error{"unknown outcome", "trial result", "", "", ""};
    r.outcome = static_cast<TrialResult::Outcome>(outcome);
    r.signature = signature_from(j.at("signature"));
    r.message = j.value("message", "");
    r.verdict = j.value("verdict", "");
    r.user_frame = j.value("user_frame", "");
    r.graph = j.value("graph", "");
    r.eager_ms = j.value("eager_ms", 0.0);
    r.compile_ms = j.value("compile_ms", 0.0);
    r.run_ms = j.value("run_ms", 0.0);
    r.new_kernels = j.value("new_kernels", int64_t{0});
    r.suspects = j.value("suspects", std::vector<std::string>());
    r.options = j.value("options", r.options);
    if (j.contains("analysis")) {
      CUTAWAY_TRY_ASSIGN(base::Json analysis, base::Json::parse(j["analysis"].get<std::string>(), "analysis"));
      CUTAWAY_TRY_ASSIGN(r.analysis, analysis_from_json(analysis, "analysis"));
    }
    if (j.contains("inputs")) { CUTAWAY_TRY_ASSIGN(r.inputs, inputs_from(j["inputs"].get<std::string>())); }
    if (j.contains("values")) {
      const auto names = j.at("value_names").get<std::vector<std::string>>();
      CUTAWAY_TRY_ASSIGN(std::vector<bundle::InputRef> refs, inputs_from(j["values"].get<std::string>()));
      if (names.size() != refs.size()) return base::Error{"names and values differ in number", "trial result", "", "", ""};
      for (size_t i = 0; i < names.size(); ++i) r.values.emplace(names[i], std::move(refs[i]));
    }
    return r;
  } catch (const Json::exception& e) {
    return base::Error{"not a trial result", "", e.what(), "", ""};
  }
}

}  // namespace cutaway::oracle
