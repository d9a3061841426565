#include "app/flows/permission.h"

#include <fstream>

#include "core/base/text.h"
#include "diagnosis/oracle/trust.h"

namespace cutaway::flows {

base::Status check_trust(const bundle::Bundle& b, bool is_trusted, const std::function<void(const std::string&)>& say) {
  std::vector<std::string> risks = oracle::needs_trust(b.graph, b.manifest);
  if (!is_trusted && !risks.empty())
    return base::Error{"running this bundle would do more than compute", b.path.string(), "it " + base::join(risks, "; it "), "--trust, when you know who wrote it", ""};
  // Without --trust this is not looked at, so that a bundle is not refused for it.
  if (const auto path = b.manifest.extra.find("python_path"); is_trusted && path != b.manifest.extra.end()) risks.push_back("looks for Python modules in " + path->second);
  if (say)
    for (const std::string& risk : risks) say("--trust: " + b.path.string() + " " + risk);
  return {};
}

uint64_t memory_limit(uint64_t asked, const bundle::Manifest& m) {
  if (asked > 0) return asked;
  for (const bundle::InputRef& in : m.inputs)
    if (in.kind != bundle::InputRef::Kind::literal && in.tensor.device.text() != "cpu") return 0;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::stoull(line.substr(13)) * 1024 / 5 * 4;
  return 0;
}

}  // namespace cutaway::flows
