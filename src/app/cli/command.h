// The table of subcommands. A row declares its arguments and returns what runs it; main.cc knows nothing else.
#pragma once
#include <CLI/CLI.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "diagnosis/report/findings.h"

namespace cutaway::cli {

/// Exit codes that all subcommands share. docs/exit_codes.md lists the rest.
inline constexpr int kOk = 0;
inline constexpr int kUsage = 2;   ///< wrong usage, or something that cannot be read

struct Command {
  std::string_view name;
  std::string_view summary;   ///< empty: for our own processes, not shown
  /// Declares arguments on `app` and returns the function to run after they were read. Returns an exit code.
  std::function<int()> (*declare)(CLI::App& app);
};
/// Every subcommand, in the order of --help.
std::span<const Command> commands();

/// Prints "cutaway: …" on standard error, and an object with the outcome "error" on standard output where --json was given.
/// Returns kUsage, or 130 after Ctrl-C.
int fail(const base::Error&);
/// --json was given: fail() prints an object too.
void print_failures_as_json(bool is_wanted = true);
/// Prints a text that is all of the answer; with --json an object that has it under `key`. Returns kOk.
int tell(const std::string& text, const char* key);

/// Opens the library that links libtorch and calls its one entry point with these words.
int enter_torch(const std::vector<std::string>& words);

/// What a number on the command line must be; the message says it in words.
CLI::Validator above_zero();
CLI::Validator not_negative();

/// --format and --json, for commands whose findings have a line of the user's.
struct FormOption {
  std::string word = "text";
  bool json = false;
  /// After the command line was read. With JSON fail() prints an object too.
  report::Form form() const;
};
void declare_form(CLI::App&, FormOption&);

/// --accuracy, --strict-accuracy, --no-accuracy.
void declare_accuracy(CLI::App&, std::string& accuracy);

std::function<int()> declare_triage(CLI::App&);
std::function<int()> declare_explain(CLI::App&);
std::function<int()> declare_profile(CLI::App&);
std::function<int()> declare_replay(CLI::App&);
std::function<int()> declare_run(CLI::App&);
std::function<int()> declare_minify(CLI::App&);
std::function<int()> declare_analyze(CLI::App&);
std::function<int()> declare_bisect(CLI::App&);
std::function<int()> declare_sweep(CLI::App&);
std::function<int()> declare_import(CLI::App&);
std::function<int()> declare_export(CLI::App&);
std::function<int()> declare_report(CLI::App&);
std::function<int()> declare_show(CLI::App&);
std::function<int()> declare_diff(CLI::App&);
std::function<int()> declare_backends(CLI::App&);
std::function<int()> declare_doctor(CLI::App&);
std::function<int()> declare_completion(CLI::App&);
std::function<int()> declare_worker(CLI::App&);
std::function<int()> declare_torch_report(CLI::App&);

}  // namespace cutaway::cli
