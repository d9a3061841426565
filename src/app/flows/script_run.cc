#include "app/flows/script_run.h"

#include <unistd.h>

#include "app/flows/python_program.h"
#include "core/base/subprocess.h"
#include "core/base/text.h"

namespace cutaway::flows {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds kStart{120};              // Python and torch on a busy machine
constexpr uint64_t kInterpreterBytes = uint64_t{2} << 30;   // what they hold before the graph runs

// The modules of the user's own backend are no part of torch: they are found where the bundle says, if it is trusted.
std::string python_path(const bundle::Manifest& m) {
  std::string path;
  if (const auto text = m.extra.find("python_path"); text != m.extra.end())
    if (auto parsed = base::Json::parse(text->second, "python_path"); parsed.ok())
      if (auto* list = parsed->as<base::Json::Array>())
        for (const base::Json& item : *list)
          if (auto* folder = item.as<std::string>()) path += *folder + ":";
  if (const char* inherited = std::getenv("PYTHONPATH")) path += inherited;
  while (!path.empty() && path.back() == ':') path.pop_back();
  return path;
}

ScriptRun::Outcome outcome_of(const base::Exit& exit, const bundle::FailureSignature& expected) {
  using Outcome = ScriptRun::Outcome;
  if (exit.kind == base::Exit::Kind::timed_out) return Outcome::otherwise;   // a script of a hang ends itself
  if (exit.kind == base::Exit::Kind::signaled) return expected.kind == "crash" && base::signal_name(exit.code) == expected.signal ? Outcome::same_failure : Outcome::otherwise;
  if (expected.kind == "crash") {
    if (expected.signal == "exit " + std::to_string(exit.code) || (expected.signal.starts_with("exit ") && exit.code == 1)) return Outcome::same_failure;
    return exit.code == 0 ? Outcome::passes : exit.code == 2 ? Outcome::cannot_run : Outcome::otherwise;
  }
  switch (exit.code) {
    case 0: return Outcome::passes;
    case 1: return Outcome::same_failure;
    case 2: return Outcome::cannot_run;
    default: return Outcome::otherwise;
  }
}

}  // namespace

base::Json ScriptRun::to_json() const {
  constexpr const char* kWords[] = {"same failure", "passes", "another failure", "cannot run with torch alone", "absent"};
  return base::Json::Object{{"outcome", kWords[static_cast<int>(outcome)]}, {"ending", ending}, {"seconds", seconds}};
}

base::Result<ScriptRun> run_script(const Programs& programs, const fs::path& bundle, const bundle::Manifest& m, const bundle::FailureSignature& expected, const ScriptLimits& limits) {
  ScriptRun run;
  std::error_code ec;
  const fs::path script = fs::absolute(bundle / "repro.py", ec);
  if (!fs::exists(script, ec)) return run;
  base::Command command;
  command.argv = {programs.python, script.string()};
  if (limits.max_bytes > 0)   // the limit that the failure was found under
    command.argv = {"/bin/sh", "-c", "ulimit -d " + std::to_string((limits.max_bytes + kInterpreterBytes) / 1024) + " && exec \"$0\" \"$1\"", programs.python, script.string()};
  for (const auto& [name, value] : m.environment) command.environment.emplace_back(name, value);
  // One thread, as candidates ran: a failure that needs more has been found otherwise. A graph from torch's cache could hide a fault.
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"}) command.environment.emplace_back(name, "1");
  for (const char* name : {"TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"}) command.environment.emplace_back(name, "0");
  if (limits.is_trusted)
    if (std::string path = python_path(m); !path.empty()) command.environment.emplace_back("PYTHONPATH", std::move(path));
  command.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER", "CUTAWAY_WORKER_FD"};
  base::RunLimits process;
  process.time = std::chrono::milliseconds(2 * limits.timeout_ms) + kStart;
  process.output_bytes = 1 << 20;
  CUTAWAY_TRY_ASSIGN(base::Output output, base::run_command(programs.with_variables(std::move(command)), {}, process));
  run.outcome = outcome_of(output.exit, expected);
  run.ending = output.exit.text(*process.time);
  run.said = last_lines(output.err.empty() ? output.out : output.err, 6);
  run.seconds = std::chrono::duration<double>(output.elapsed).count();
  return run;
}

}  // namespace cutaway::flows
