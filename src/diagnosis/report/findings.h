// What a command found in a user's program, as data, and in the two forms that other programs show beside the code: SARIF 2.1.0 (editors, code
// scanning) and the annotations of GitHub's workflows. Pure: nothing is read or written here. docs/formats/findings.md is the document.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cutaway::report {

/// A line of the user's.
struct Spot {
  std::string file, function, text;
  int64_t line = 0;
};

enum class Severity : uint8_t { note, warning, error };

struct Finding {
  std::string rule;                    ///< "graph-break/print", "wrong-numbers": the same thing has the same rule in every program
  std::string rule_text;               ///< the rule in one sentence
  Severity severity = Severity::warning;
  std::string title;                   ///< a few words
  std::string message;                 ///< what happened, and what to do; lines
  Spot spot;
  std::vector<std::pair<std::string, Spot>> related;            ///< why, and where
  std::vector<std::pair<std::string, std::string>> properties;  ///< "repro" -> its path
};

struct Findings {
  std::vector<Finding> list;
  /// What is said about the run and belongs to no line.
  std::vector<std::pair<Severity, std::string>> notes;
  bool is_complete = true;             ///< the program was looked at to its end
};

/// The form that is asked for on the command line.
enum class Form : uint8_t { text, json, sarif, github };

/// A SARIF log with one run. Files inside `root` are named relative to it (its uriBaseId is %SRCROOT%), others by file: URIs. The same findings
/// give the same bytes.
std::string sarif_text(const Findings&, std::string_view root, std::string_view version);
/// One workflow command a line: "::warning file=train.py,line=8,title=…::…".
std::string github_text(const Findings&, std::string_view root);

}  // namespace cutaway::report
