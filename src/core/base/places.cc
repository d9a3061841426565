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

std::string without_private_paths(std::string_view text) {
  const auto ends = [](char c) { return c == '\0' || std::string_view(" \t\n\r\"'`,;:<>()[]{}|=\\").find(c) != std::string_view::npos; };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool begins = text[at] == '/' && (at == 0 || ends(text[at - 1])) && !(at + 1 < text.size() && text[at + 1] == '/');
    if (!begins) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && !ends(text[end])) ++end;
    std::string path(text.substr(at, end - at));
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    out += path.find('/', 1) == std::string::npos ? path : package_relative(path);
    at = end;
  }
  return out;
}

}  // namespace cutaway::base
