// `cutaway report`: reads a bundle and the evidence beside it, and writes report.html there. Executes nothing of the bundle.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::flows {

/// A bundle as the user named it, and where what is found out about it goes: into its directory, and beside a .tar.
struct Place {
  std::filesystem::path bundle;    ///< the directory to read
  std::filesystem::path archive;   ///< the .tar that it was unpacked from; empty: it is the user's own directory
  /// "analysis.json" in the directory, or NAME.analysis.json beside NAME.tar.
  std::filesystem::path file(std::string_view name) const;
  /// What messages and commands call it.
  std::string shown() const { return (archive.empty() ? bundle : archive).string(); }
};

/// The path of the page. An Error for a directory that is no bundle, evidence that cannot be read, and a page that cannot be written.
base::Result<std::filesystem::path> write_report(const Place&);
inline base::Result<std::filesystem::path> write_report(const std::filesystem::path& bundle) { return write_report(Place{bundle, {}}); }

}  // namespace cutaway::flows
