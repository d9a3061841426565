#include "app/flows/report_json.h"

namespace cutaway::flows {

using base::Json;

base::Json::Object common_keys(std::string_view outcome, const bundle::FailureSignature& s, const std::string& backend, const std::string& bundle, const std::string& repro, double seconds,
                               const std::string& message) {
  const auto text = [](const std::string& t) { return t.empty() ? Json() : Json(t); };
  Json signature;
  if (!s.kind.empty())
    signature = Json(Json::Object{{"kind", text(s.kind)}, {"stage", text(s.stage)}, {"type", text(s.type)}, {"op", text(s.op)}, {"signal", text(s.signal)}, {"message", text(s.message)}, {"user_frame", text(s.user_frame)}});
  Json::Object j{{"outcome", outcome}, {"kind", text(s.kind)}, {"stage", text(s.stage)}, {"backend", text(backend)}, {"signature", std::move(signature)}, {"bundle", text(bundle)}, {"repro", text(repro)},
                 {"seconds", seconds}, {"message", text(message)}, {"others", Json::Array{}}};
  for (const char* key : {"nodes_before", "nodes_after", "elements_before", "elements_after", "candidates", "one_minimal", "reproduced_rate", "first_wrong"}) j[key] = Json();
  return j;
}

}  // namespace cutaway::flows
