// `cutaway report`: reads a bundle and the evidence beside it, and writes report.html there. Executes nothing of the bundle.
#pragma once
#include <filesystem>

#include "core/base/result.h"

namespace cutaway::flows {

/// The path of the page. An Error for a directory that is no bundle, evidence that cannot be read, and a page that cannot be written.
base::Result<std::filesystem::path> write_report(const std::filesystem::path& bundle);

}  // namespace cutaway::flows
