#include "core/debug/settings.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/base/text.h"
#include "core/debug/topics.h"

namespace cutaway::debug {
namespace {

base::Result<Ladder> parse_ladder(const std::string& text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '5') return static_cast<Ladder>(text[0] - '0');
  return base::Error{.what = base::quote(text) + " is not a level", .place = "CUTAWAY_DEBUG", .because = "",
                     .hint = "0 (off), 1 (summary), 2 (reasons), 3 (graphs), 4 (code) or 5 (everything)", .excerpt = ""};
}

// Takes the word "help" out of a list of words.
bool take_help(std::string& words) {
  std::string rest;
  bool found = false;
  for (size_t at = 0; at <= words.size();) {
    const size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    if (word == "help") found = true;
    else rest += (rest.empty() ? "" : ",") + word;
    at = comma + 1;
  }
  words = rest;
  return found;
}

// Variables that are read elsewhere: a word that nobody knows is told here, before it is taken for another one.
base::Status check_others(const Lookup& lookup) {
  struct Rule { const char* name; std::vector<std::string> values; const char* because; };
  static const std::vector<Rule> rules = {
      {"CUTAWAY_STRICT", {"0", "1"}, "it is 0 or 1"},
      {"CUTAWAY_CHECK", {"0", "1", "2", "3"}, "it is 0 (off), 1 (outputs), 2 (kernels) or 3 (every value)"},
      {"CUTAWAY_REPLAY_RECORD", {"0", "1"}, "it is 0 or 1"},
      {"CUTAWAY_REPRO_AFTER", {"capture", "dynamo", "aot"}, "a backend is watched after \"capture\" (torch says \"dynamo\") or after \"aot\""},
      {"CUTAWAY_REPRO_LEVEL", {"1", "2", "3", "4"}, "a level is 1, 2, 3 or 4"},
      {"CUTAWAY_PLANT_CAPTURE_FAULT", {"BUILD_MAP"}, "capture's handler of BUILD_MAP alone can be made to fail"},
  };
  const auto wrong = [](const char* name, const std::string& value, std::string because) {
    return base::Error{.what = std::string(name) + " is '" + value + "'", .place = "", .because = std::move(because), .hint = "", .excerpt = ""};
  };
  for (const Rule& rule : rules)
    if (const auto value = lookup(rule.name); value && !value->empty() && std::find(rule.values.begin(), rule.values.end(), *value) == rule.values.end()) return wrong(rule.name, *value, rule.because);
  for (const char* name : {"CUTAWAY_COMMAND", "CUTAWAY_PYTHON"})
    if (const auto value = lookup(name); value && value->find('/') != std::string::npos && ::access(value->c_str(), X_OK) != 0) return wrong(name, *value, "there is no program of this name");
  const auto number = [](const std::string& text) {
    double n = -1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
    return problem == std::errc() && end == text.data() + text.size() && std::isfinite(n) ? n : -1;
  };
  if (const auto value = lookup("CUTAWAY_COMPILE_SECONDS"); value && !value->empty() && number(*value) <= 0) return wrong("CUTAWAY_COMPILE_SECONDS", *value, "it is a number of seconds above 0");
  if (const auto value = lookup("CUTAWAY_POOL_MB"); value && !value->empty() && (value->find_first_not_of("0123456789") != std::string::npos || number(*value) > 1e9)) return wrong("CUTAWAY_POOL_MB", *value, "it is a whole number of megabytes; 0 keeps nothing");
  if (const auto value = lookup("CUTAWAY_PLANT_NATIVE_FAULT"); value && !value->empty()) {
    static const std::vector<std::string> kinds = {"rewrites", "fusions", "kernels", "rules"};
    if (const size_t colon = value->find(':'); colon == std::string::npos || std::find(kinds.begin(), kinds.end(), value->substr(0, colon)) == kinds.end())
      return wrong("CUTAWAY_PLANT_NATIVE_FAULT", *value, "it is KIND:NAME, and a kind is " + base::join(kinds));
  }
  std::error_code ec;
  for (const char* name : {"CUTAWAY_DEBUG_DIR", "CUTAWAY_CACHE_DIR"})
    if (const auto value = lookup(name); value && std::filesystem::exists(*value, ec) && !std::filesystem::is_directory(*value, ec)) return wrong(name, *value, "it is not a folder");
  return {};
}

}  // namespace

std::string debug_root(const Lookup& lookup) {
  for (const char* name : {"CUTAWAY_DEBUG_DIR", "TORCH_COMPILE_DEBUG_DIR"})
    if (const auto root = lookup(name); root && !root->empty()) return *root;
  return ".";
}

base::Result<Settings> from_environment(const Lookup& lookup) {
  CUTAWAY_TRY(check_others(lookup));
  Settings s;
  if (const auto words = lookup("TORCH_LOGS")) s.logs = parse_torch_logs(*words, s.notes, s.logs);
  if (auto words = lookup("CUTAWAY_LOGS")) {
    if (take_help(*words)) s.help = topics_text();
    CUTAWAY_TRY_ASSIGN(s.logs, parse_logs(*words, "CUTAWAY_LOGS", s.logs));
  }

  Ladder ladder = Ladder::off;
  const auto own = lookup("CUTAWAY_DEBUG");
  if (own && !own->empty()) {
    CUTAWAY_TRY_ASSIGN(ladder, parse_ladder(*own));
  } else if (lookup("TORCH_COMPILE_DEBUG") == "1") {
    ladder = Ladder::code;   // what torch's folder shows without its expensive parts
  }
  CUTAWAY_TRY_ASSIGN(s.files, FileChoice::parse(ladder, lookup("CUTAWAY_DEBUG_FILES").value_or(""), "CUTAWAY_DEBUG_FILES"));

  s.debug_root = debug_root(lookup);
  s.events_file = lookup("CUTAWAY_EVENTS").value_or("");
  return s;
}

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace cutaway::debug
