#include "core/base/places.h"

#include <filesystem>
#include <string_view>

namespace cutaway::base {

std::string package_relative(const std::string& file) {
  if (!file.starts_with('/')) return file;
  const std::filesystem::path path(file);
  std::filesystem::path name = path.filename();
  std::error_code ec;
  bool is_package = false;
  for (std::filesystem::path folder = path.parent_path(); std::filesystem::exists(folder / "__init__.py", ec) && folder.has_relative_path(); folder = folder.parent_path()) {
    name = folder.filename() / name;
    is_package = true;
  }
  if (is_package) return name.string();
  for (const char* mark : {"/site-packages/", "/dist-packages/"})   // on another machine than the one it was on
    if (const size_t at = file.rfind(mark); at != std::string::npos) return file.substr(at + std::string_view(mark).size());
  return name.string();
}

}  // namespace cutaway::base
