#include "app/flows/report_json.h"

#include "core/bundle/signature_json.h"
#include "core/script/repro_script.h"
#include "diagnosis/report/html.h"

namespace cutaway::flows {

using base::Json;

base::Json::Object common_keys(std::string_view outcome, const bundle::FailureSignature& s, const std::string& backend, const std::string& bundle, const std::string& repro, double seconds,
                               const std::string& message) {
  const auto text = [](const std::string& t) { return t.empty() ? Json() : Json(t); };
  Json signature;
  if (!s.kind.empty()) bundle::for_each_field(s, [&](const char* key, const std::string& value) { signature[key] = text(value); });
  Json::Object j{{"outcome", outcome}, {"kind", text(s.kind)}, {"stage", text(s.stage)}, {"backend", text(backend)}, {"signature", std::move(signature)}, {"bundle", text(bundle)}, {"repro", text(repro)},
                 {"seconds", seconds}, {"message", text(message)}, {"others", Json::Array{}}};
  for (const char* key : {"nodes_before", "nodes_after", "elements_before", "elements_after", "candidates", "one_minimal", "reproduced_rate", "first_wrong"}) j[key] = Json();
  return j;
}

std::string report_line(std::string_view key, std::string_view value, size_t column) {
  std::string out(key);
  out.append(key.size() < column ? column - key.size() : 1, ' ');
  return out.append(value) + "\n";
}

std::string flags_text(const std::string& backend, const std::string& accuracy, bool is_trusted) {
  std::string out;
  if (!backend.empty()) out += " --backend " + report::shell_word(backend);
  if (accuracy == "accuracy") out += " --accuracy";
  if (accuracy == "strict") out += " --strict-accuracy";
  if (accuracy == "none") out += " --no-accuracy";
  return out + (is_trusted ? " --trust" : "");
}

std::string attach_text(const std::string& repro, const bundle::Manifest& m) {
  const std::string gap = "      ";
  if (!script::runs_with_torch_alone(m)) return repro + gap + "(torch alone has no backend " + m.backend + ": the failure shows with `cutaway run`)";
  if (const std::string how = script::program_in_script(m); !how.empty()) return repro + gap + "(torch only; " + how + ")";
  constexpr std::string_view kImported = "python:";
  if (m.backend.starts_with(kImported)) return repro + gap + "(torch, and the module " + m.backend.substr(kImported.size(), m.backend.find(':', kImported.size()) - kImported.size()) + ")";
  return repro + gap + "(torch only)";
}

base::Json::Object error_keys(const base::Error& error) {
  Json::Object j = common_keys("error", {}, "", "", "", 0, error.text());
  j["seconds"] = Json();
  return j;
}

}  // namespace cutaway::flows
