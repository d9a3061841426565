// A bundle and the evidence beside it as one self-contained page. Pure: values in, (path, text) pairs out; nothing is read or written here.
// No scripts, no network, no time stamps: the same subject gives the same bytes, and a stranger's bundle can put nothing but text on the page.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/bundle.h"
#include "diagnosis/report/evidence.h"
#include "diagnosis/report/profile.h"

namespace cutaway::report {

struct Subject {
  std::string name;                                   ///< of the bundle's directory: commands name it
  ir::Graph graph;
  bundle::Manifest manifest;
  bool has_script = false;                            ///< repro.py lies beside it
  std::optional<Certificate> certificate;
  std::optional<std::vector<AblationRow>> ablation;
  std::optional<std::vector<AnalysisRow>> analysis;
  std::optional<Bisection> bisection;
  std::optional<Profile> profile;
};

struct File {
  std::string path;   ///< relative to the bundle
  std::string text;
};
/// report.html. The first file is the page; there is no other for now.
std::vector<File> make_report(const Subject&);

}  // namespace cutaway::report
