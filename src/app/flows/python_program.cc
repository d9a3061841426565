#include "app/flows/python_program.h"

#include "core/base/subprocess.h"

namespace cutaway::flows {
namespace {

// "what\n   because: …\n   try: …", as cutaway.Error prints itself, back into an Error.
base::Error error_from(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // What other code printed before it is not ours to repeat.
  base::Error e;
  const auto cut = [&](std::string_view key) {
    const size_t at = text.rfind("\n   " + std::string(key) + ": ");
    std::string found;
    if (at != text.npos) { found = text.substr(at + 6 + key.size()); text.resize(at); }
    return found;
  };
  e.hint = cut("try");
  e.because = cut("because");
  const size_t line = text.rfind('\n');
  e.what = line == text.npos ? text : text.substr(line + 1);
  return e;
}

}  // namespace

std::string last_lines(std::string_view text, size_t most) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  size_t at = text.size();
  for (size_t lines = 0; lines < most && at != 0 && at != std::string_view::npos; ++lines) at = at > 0 ? text.rfind('\n', at - 1) : 0;
  return std::string(at == std::string_view::npos || at == 0 ? text : text.substr(at + 1));
}

base::Status run_python_program(const Programs& programs, const std::string& module, const std::vector<std::string>& words, const std::string& place, int64_t timeout_ms,
                                const std::function<void(const std::string&)>& say) {
  base::Command command;
  command.argv = {programs.python, "-m", module};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.environment = {{"CUTAWAY_COMMAND", programs.command}};
  command.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER", "CUTAWAY_REPRO_LEVEL", "TORCHDYNAMO_REPRO_LEVEL"};
  base::RunLimits limits;
  limits.time = std::chrono::milliseconds(timeout_ms);
  CUTAWAY_TRY_ASSIGN(const base::Output done, base::run_command(programs.with_variables(std::move(command)), {}, limits));
  if (done.exit.ok()) {
    if (say && !done.err.empty()) say(last_lines(done.err, 8));
    return {};
  }
  if (done.exit.kind == base::Exit::Kind::exited && done.exit.code == 2 && !done.err.empty()) return error_from(done.err);
  return base::Error{"the process that was to do it ended with " + done.exit.text(std::chrono::milliseconds(timeout_ms)), place, last_lines(done.err, 6), "", ""};
}

}  // namespace cutaway::flows
