#include "diagnosis/oracle/switches.h"

#include <algorithm>

#include "core/base/json.h"
#include "core/base/text.h"

namespace cutaway::oracle {

using base::Json;

const std::vector<std::string>& inductor_parts() {
  static const std::vector<std::string> parts = {"pre_grad_passes", "decompositions", "joint_graph_passes", "post_grad_passes", "patterns", "lowerings", "fusions"};
  return parts;
}

const std::vector<std::string>& native_parts() {
  static const std::vector<std::string> parts = {"rewrites", "fusions", "kernels"};
  return parts;
}

base::Status check_part(std::string_view part) {
  std::vector<std::string> parts = inductor_parts();
  parts.insert(parts.end(), {"rewrites", "kernels"});   // fusions are a part of both
  if (std::find(parts.begin(), parts.end(), part) != parts.end()) return {};
  return base::Error{"neither Inductor nor native has a part " + base::quote(part) + base::did_you_mean(part, parts), "", "", "one of " + base::join(parts), ""};
}

std::vector<Application> read_applications(std::string_view log) {
  std::vector<Application> found;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    auto parsed = Json::parse(line, "applications");
    if (!parsed.ok()) continue;
    const Json::Object* o = parsed->as<Json::Object>();
    if (!o) continue;
    const auto text = [&](const char* key) {
      const auto it = o->find(key);
      const std::string* s = it == o->end() ? nullptr : it->second.as<std::string>();
      return s ? *s : std::string();
    };
    Application a{text("part"), text("name"), 0, text("node"), text("graph"), text("place")};
    if (const auto it = o->find("number"); it != o->end())
      if (const int64_t* n = it->second.as<int64_t>()) a.number = *n;
    found.push_back(std::move(a));
  }
  return found;
}

}  // namespace cutaway::oracle
