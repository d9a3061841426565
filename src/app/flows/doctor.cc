#include "app/flows/doctor.h"

#include <algorithm>
#include <thread>

#include "app/flows/backend_list.h"
#include "app/flows/report_json.h"
#include "core/base/json.h"
#include "core/base/subprocess.h"

namespace cutaway::flows {
namespace {

using base::Json;
constexpr std::chrono::milliseconds kPatience{60'000};   // torch is loaded where it may have devices

// The first line of what `argv` prints, or nothing when it cannot be run.
std::string first_line_of(std::vector<std::string> argv) {
  auto out = base::run_command({std::move(argv), {}, {}, {}}, {}, {kPatience, 1 << 16});
  if (!out.ok() || !out->exit.ok()) return "";
  const std::string& text = out->out.empty() ? out->err : out->out;
  return text.substr(0, text.find('\n'));
}

// What Python knows without importing torch, which takes seconds.
constexpr const char* kAskPython = R"py(
import importlib.metadata as m, importlib.util as u, json, os, runpy, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
def built_for():   # written by the build, and read without loading the package
    spec = u.find_spec("cutaway")
    file = os.path.join(os.path.dirname(spec.origin), "_built_for.py") if spec is not None and spec.origin else ""
    return runpy.run_path(file)["TORCH"] if os.path.exists(file) else ""
def cuda():
    spec = u.find_spec("torch")
    if spec is None or not os.path.exists(os.path.join(os.path.dirname(spec.origin), "lib", "libtorch_cuda.so")): return []
    import torch
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return [f"cuda:{i} ({p.name}, {p.total_memory >> 30} GiB, sm_{p.major}{p.minor})" for i, p in enumerate(found)]
print(json.dumps({"cuda": cuda(), "built_for": built_for(), "python": sys.version.split()[0], "executable": sys.executable,
                  **{n: version(n) for n in ("torch", "cutaway", "numpy", "transformers", "triton")}}))
)py";

Json ask(std::vector<std::string> argv, std::string* problem) {
  auto out = base::run_command({std::move(argv), {}, {}, {}}, {}, {kPatience, 1 << 20});
  if (!out.ok()) { *problem = out.error().what; return {}; }
  if (!out->exit.ok()) { *problem = out->err.empty() ? out->exit.text(kPatience) : out->err.substr(0, out->err.find('\n')); return {}; }
  auto j = Json::parse(out->out.substr(0, out->out.find('\n')), "answer");
  if (!j.ok()) { *problem = "it answered something else"; return {}; }
  return std::move(*j);
}

std::string text_field(const Json& j, std::string_view key) {
  if (auto* o = j.as<Json::Object>())
    if (auto it = o->find(key); it != o->end()) {
      if (auto* s = it->second.as<std::string>()) return *s;
      return it->second.text();
    }
  return "";
}

}  // namespace

bool Diagnosis::is_healthy() const {
  return std::none_of(findings.begin(), findings.end(), [](const DoctorFinding& f) { return f.is_needed && f.value.empty(); });
}

Diagnosis examine(const Programs& programs, const std::string& version) {
  Diagnosis d;
  d.findings.push_back({"cutaway", version, programs.command, "", true});

  std::string python_problem, torch_problem;
  const Json python = ask({programs.python, "-c", kAskPython}, &python_problem);
  d.findings.push_back({"python", text_field(python, "python"), programs.python, "set CUTAWAY_PYTHON to an interpreter that has torch (" + python_problem + ")", true});
  d.findings.push_back({"torch in python", text_field(python, "torch"), "", "install torch into " + programs.python, true});
  d.findings.push_back({"cutaway in python", text_field(python, "cutaway"), "", "install cutaway there, with `make build`", false});

  // libtorch has no stable C++ interface: another release of torch than ours was built for cannot be loaded.
  const auto release = [](const std::string& version) { return version.substr(0, version.find('+')); };
  if (const std::string built_for = text_field(python, "built_for"), found = text_field(python, "torch"); !built_for.empty() && !found.empty()) {
    const bool is_same = release(built_for) == release(found);
    d.findings.push_back({"built for torch", is_same ? built_for : "", "", "cutaway was built for torch " + release(built_for) + ", and torch " + found + " is in " + programs.python + ": pip install torch==" + release(built_for) +
                                                                               " there, or build cutaway for this torch with `make build` (pip install --no-build-isolation --no-deps --force-reinstall . in its sources)", true});
  }

  const Json torch = ask({programs.command, "torch-report"}, &torch_problem);
  d.findings.push_back({"libtorch", text_field(torch, "torch"), text_field(torch, "cpu_capability"), "the command cannot load libtorch: " + torch_problem, true});
  if (auto* o = torch.as<Json::Object>())
    if (auto it = o->find("devices"); it != o->end())
      if (auto* list = it->second.as<Json::Array>())
        for (const Json& device : *list)
          if (auto* s = device.as<std::string>()) d.devices.push_back(*s);
  if (const auto* o = python.as<Json::Object>())   // libtorch_cuda is not always loaded with libtorch; Python knows the names too
    if (const auto it = o->find("cuda"); it != o->end() && it->second.as<Json::Array>() && !it->second.as<Json::Array>()->empty()) {
      std::erase_if(d.devices, [](const std::string& name) { return name.starts_with("cuda"); });
      for (const Json& device : *it->second.as<Json::Array>())
        if (const auto* s = device.as<std::string>()) d.devices.push_back(*s);
    }
  d.findings.push_back({"cores", std::to_string(std::thread::hardware_concurrency()), "", "", false});

  d.findings.push_back({"g++", first_line_of({"g++", "--version"}), "the backend native and torch's Inductor compile their C++ kernels with it", "install g++, or set CUTAWAY_CXX (native) and CXX (Inductor)", false});
  d.findings.push_back({"clang++", first_line_of({"clang++", "--version"}), "only for fuzzing", "", false});
  d.findings.push_back({"gpu", first_line_of({"nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"}), "as its driver sees it", "", false});
  d.findings.push_back({"nvcc", first_line_of({"nvcc", "--version"}), "only for CUDA", "", false});
  d.findings.push_back({"triton", text_field(python, "triton"), "torch's Inductor needs it for GPU kernels", "", false});
  d.findings.push_back({"transformers", text_field(python, "transformers"), "the tests and the demo build models from its configurations", "", false});
  return d;
}

std::string Diagnosis::text() const {
  std::string out;
  size_t width = 0;
  for (const DoctorFinding& f : findings) width = std::max(width, f.name.size());
  const auto line = [&](const std::string& name, const std::string& value) { out += report_line(name, value, width + 2); };
  for (const DoctorFinding& f : findings)
    if (!f.value.empty()) line(f.name, f.value + (f.detail.empty() ? "" : "   " + f.detail));
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : ", ") + device;
  line("devices", list.empty() ? "unknown" : list);
  line("backends", backend_names(capabilities::rows()) + "; with --trust also python:MODULE:FUNCTION and the names that torch.compile knows (cutaway backends)");
  bool head = false;
  for (const DoctorFinding& f : findings) {
    if (!f.value.empty()) continue;
    if (!head) out += "\nmissing\n";
    head = true;
    line(f.name, f.is_needed ? "NEEDED: " + f.remedy : f.detail + (f.detail.empty() || f.remedy.empty() ? "" : "; ") + f.remedy);
  }
  out += is_healthy() ? "\neverything that is needed is here\n" : "\nsomething that is needed is missing; the lines above say what to do\n";
  return out;
}

std::string Diagnosis::to_json() const {
  Json::Array list, names;
  for (const DoctorFinding& f : findings)
    list.push_back(Json::Object{{"name", f.name}, {"value", f.value.empty() ? Json() : Json(f.value)}, {"detail", f.detail}, {"remedy", f.value.empty() ? Json(f.remedy) : Json()}, {"is_needed", f.is_needed}});
  for (const std::string& device : devices) names.push_back(device);
  return Json(Json::Object{{"healthy", is_healthy()}, {"findings", std::move(list)}, {"devices", std::move(names)}, {"backends", backends_json(capabilities::rows())}}).text(2);
}

}  // namespace cutaway::flows
