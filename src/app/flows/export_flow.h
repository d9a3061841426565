// `cutaway export`: a bundle as a file that other tools read. The file's ending says which.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/flows/workers.h"
#include "core/base/result.h"

namespace cutaway::flows {

struct ExportOptions {
  std::filesystem::path bundle, output;
  bool is_trusted = false;
  int64_t timeout_ms = 600'000;
  std::function<void(const std::string&)> say;
};
struct ExportReport {
  std::string bundle, output;
  std::string data;                ///< folder that belongs to the file; empty: it stands alone
  std::string kind;                ///< "pt2", "py", "cut", "tar"
  double seconds = 0;
  std::string text() const;
  std::string to_json() const;
};
/// .pt2: an exported program, read back and compared (it runs the graph, so what needs --trust needs it here too). .py: a script that shows the
/// failure with torch alone, its data in a folder beside it. .cut: the graph's text. .tar: the bundle as one file. Nothing else is executed.
base::Result<ExportReport> export_bundle(const Programs&, const ExportOptions&);

}  // namespace cutaway::flows
