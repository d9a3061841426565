#include "app/flows/script_run.h"

#include <sys/socket.h>

#include <cerrno>

#include "app/flows/python_program.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"

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

// What a script imports first, and what its first compilation would. A load that fails is left to the script to tell.
constexpr const char* kLoad = R"py(
import os, sys
try:
    import torch._dynamo
    if sys.argv[1:] == ["inductor"]:
        import torch._inductor.compile_fx
        from torch._inductor.cpu_vec_isa import pick_vec_isa
        pick_vec_isa()
except Exception:
    pass
with open(3, "rb") as told:
    path = os.fsdecode(told.read())
if path:
    import runpy
    sys.argv[:] = [path]
    sys.path.insert(0, os.path.dirname(path))
    runpy.run_path(path, run_name="__main__")
)py";

}  // namespace

/// How a script is started; `words` are what stands after `python`.
class ScriptStart {
 public:
  ScriptStart(const Programs& programs, const bundle::Manifest& m, const ScriptLimits& limits) {
    command_.argv = {programs.python};
    if (limits.max_bytes > 0)   // the limit that the failure was found under
      command_.argv = {"/bin/sh", "-c", "ulimit -d " + std::to_string((limits.max_bytes + kInterpreterBytes) / 1024) + " && exec \"$0\" \"$@\"", programs.python};
    for (const auto& [name, value] : m.environment) command_.environment.emplace_back(name, value);
    // One thread, as candidates ran: a failure that needs more has been found otherwise. A graph from torch's cache could hide a fault.
    for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"}) command_.environment.emplace_back(name, "1");
    for (const char* name : {"TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"}) command_.environment.emplace_back(name, "0");
    if (limits.is_trusted)
      if (std::string path = python_path(m); !path.empty()) command_.environment.emplace_back("PYTHONPATH", std::move(path));
    command_.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER", "CUTAWAY_WORKER_FD"};
    command_ = programs.with_variables(std::move(command_));
  }
  base::Command with(const std::vector<std::string>& words) const {
    base::Command c = command_;
    c.argv.insert(c.argv.end(), words.begin(), words.end());
    return c;
  }
  /// None: it was started otherwise. It has the script then, and runs it.
  std::optional<base::Running> take(std::optional<EarlyPython> early, const std::string& script) const {
    if (!early || early->command_.argv != command_.argv || early->command_.environment != command_.environment) return std::nullopt;
    if (::send(early->script_.get(), script.data(), script.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(script.size())) return std::nullopt;   // it is gone
    early->script_.close();
    return std::move(early->process_);
  }
  const base::Command& command() const { return command_; }

 private:
  base::Command command_;
};

base::Result<EarlyPython> EarlyPython::start(const Programs& programs, const bundle::Manifest& m, const ScriptLimits& limits) {
  constexpr int kChildFd = 3;
  const ScriptStart start(programs, m, limits);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return base::os_error("repro.py", "cannot be given a socket", errno);
  base::FileDescriptor theirs(ends[0]), ours(ends[1]);
  // -P: nothing is imported from the folder that the user happens to be in.
  const std::string what = capabilities::row_of(m.backend).is_inductor ? "inductor" : "torch";
  CUTAWAY_TRY_ASSIGN(base::Running process, base::Running::start(start.with({"-P", "-c", kLoad, what}), {}, {{theirs.get(), kChildFd}}));
  return EarlyPython(std::move(process), std::move(ours), start.command());
}

base::Json ScriptRun::to_json() const {
  constexpr const char* kWords[] = {"same failure", "passes", "another failure", "cannot run with torch alone", "absent"};
  return base::Json::Object{{"outcome", kWords[static_cast<int>(outcome)]}, {"ending", ending}, {"seconds", seconds}};
}

base::Result<ScriptRun> run_script(const Programs& programs, const fs::path& bundle, const bundle::Manifest& m, const bundle::FailureSignature& expected, const ScriptLimits& limits,
                                   std::optional<EarlyPython> early) {
  ScriptRun run;
  std::error_code ec;
  const fs::path script = fs::absolute(bundle / "repro.py", ec);
  if (!fs::exists(script, ec)) return run;
  const ScriptStart start(programs, m, limits);
  base::RunLimits process;
  process.time = std::chrono::milliseconds(2 * limits.timeout_ms) + kStart;
  process.output_bytes = 1 << 20;
  std::optional<base::Running> running = start.take(std::move(early), script.string());
  if (!running) {
    CUTAWAY_TRY_ASSIGN(base::Running started, base::Running::start(start.with({script.string()})));
    running.emplace(std::move(started));
  }
  CUTAWAY_TRY_ASSIGN(base::Output output, running->finish(process));
  run.outcome = outcome_of(output.exit, expected);
  run.ending = output.exit.text(*process.time);
  run.said = last_lines(output.err.empty() ? output.out : output.err, 6);
  run.seconds = std::chrono::duration<double>(output.elapsed).count();
  return run;
}

}  // namespace cutaway::flows
