#include "app/cli/subject.h"

#include "core/base/files.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace cutaway::cli {

base::Result<Subject> read_subject(const std::filesystem::path& path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return base::Error{"no such file or directory", path.string(), "", "give a .cut file, a bundle directory or its .tar", ""};
  Subject subject;
  subject.path = path;
  CUTAWAY_TRY_ASSIGN(const bundle::BundleArgument argument, bundle::open_argument(path));
  if (bundle::looks_like_bundle(argument.path)) {
    CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(argument.path));
    subject.graph = std::move(b.graph);
    subject.manifest = std::move(b.manifest);
    return subject;
  }
  if (std::filesystem::is_directory(path, ec)) return base::Error{"is a directory, but not a bundle", path.string(), "it holds no manifest.json", "give the directory that `cutaway.save` wrote", ""};
  CUTAWAY_TRY_ASSIGN(std::string text, base::read_file(path));
  CUTAWAY_TRY_ASSIGN(subject.graph, ir::parse(text, path.string()));
  if (auto breaches = ir::verify(subject.graph, {nullptr, path.string()}); !breaches.empty()) return std::move(breaches.front());
  return subject;
}

}  // namespace cutaway::cli
