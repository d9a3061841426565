// `cutaway import`: a file of torch's becomes a bundle. Reading one runs code that the file brings along, so it happens in a process of its own
// (cutaway.importer) and needs --trust; the .tar of a bundle is only unpacked; docs/notes/import_files.md tells what would run.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "app/flows/workers.h"
#include "core/base/result.h"

namespace cutaway::flows {

struct ImportOptions {
  std::filesystem::path file;
  std::filesystem::path output;        ///< empty: the file's name without its ending, here
  std::string backend, accuracy;       ///< empty: as the file says, or inductor; "none" for no accuracy
  std::filesystem::path data;          ///< torch's checkpoints folder, where it is not where the script says
  bool is_trusted = false;
  bool random_inputs = false;          ///< missing data becomes random data, recorded as such
  uint64_t max_bytes = 0;              ///< of data; 0: the usual limit
  int64_t timeout_ms = 600'000;
  std::function<void(const std::string&)> say;
};
struct ImportReport {
  std::string file, bundle, kind, stage, backend, accuracy, repro;   ///< kind: "pt2", "script" or "tar"
  uint64_t nodes = 0, inputs = 0, seeded = 0;
  double seconds = 0;
  std::string text() const;
  std::string to_json() const;
};
base::Result<ImportReport> import_file(const Programs&, const ImportOptions&);

}  // namespace cutaway::flows
