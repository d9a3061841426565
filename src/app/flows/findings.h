// What `explain` and `triage` found, as findings at the user's lines (diagnosis/report/findings.h writes them for editors and CI).
#pragma once
#include <string>

#include "app/flows/triage_flow.h"
#include "core/base/json.h"
#include "diagnosis/report/findings.h"

namespace cutaway::flows {

/// Of the records that explain_script.py collects (docs/exit_codes.md: `explain --json`): breaks, frames left to Python, recompiles, errors. Equal
/// ones are one finding that says how often.
report::Findings explain_findings(const base::Json& answer);
/// At most one failure, at the line that called compiled code (of a failed capture: at the line that was being captured); `script` stands for a line that
/// is not known. What has no line is a note.
report::Findings triage_findings(const TriageReport&, const std::string& script);

/// Where files are named from: $GITHUB_WORKSPACE, else the current directory.
std::string findings_root();

}  // namespace cutaway::flows
