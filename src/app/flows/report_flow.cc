#include "app/flows/report_flow.h"

#include "core/base/files.h"
#include "core/bundle/bundle.h"
#include "diagnosis/report/report.h"

namespace cutaway::flows {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxEvidenceBytes = 64'000'000;

/// What `read` makes of a file beside the manifest; none when there is no such file.
template <class T>
base::Result<std::optional<T>> read_evidence(const fs::path& path, base::Result<T> (*read)(std::string_view, std::string_view)) {
  std::error_code ec;
  const fs::file_status status = fs::symlink_status(path, ec);
  if (status.type() == fs::file_type::not_found) return std::optional<T>();
  CUTAWAY_TRY_ASSIGN(std::string text, base::read_file(path, kMaxEvidenceBytes, base::Links::refuse));
  CUTAWAY_TRY_ASSIGN(T value, read(text, path.string()));
  return std::optional<T>(std::move(value));
}

/// The directory's own name, also for "." and "out/".
std::string name_of(const fs::path& path) {
  std::error_code ec;
  fs::path whole = fs::absolute(path, ec).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.has_filename() ? whole.filename().string() : whole.string();
}

}  // namespace

fs::path Place::file(std::string_view name) const {
  if (archive.empty()) return bundle / name;
  return archive.parent_path() / (archive.stem().string() + "." + std::string(name));
}

base::Result<fs::path> write_report(const Place& place) {
  std::error_code ec;
  const fs::path& path = place.bundle;
  if (!fs::is_directory(path, ec)) return base::Error{"is no directory", path.string(), ec ? ec.message() : "", "the directory of a bundle, such as `cutaway minify` writes, or its .tar", ""};
  if (!bundle::looks_like_bundle(path)) return base::Error{"is no bundle", path.string(), "it has no manifest.json and graph.cut", "the directory of a bundle, such as `cutaway minify` writes", ""};
  // Data is only counted, never read: a report can be made where the blobs are not.
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(path, bundle::Blobs::ignored));
  report::Subject subject;
  subject.name = name_of(place.shown());
  subject.graph = std::move(b.graph);
  subject.manifest = std::move(b.manifest);
  subject.has_script = place.archive.empty() && fs::is_regular_file(path / "repro.py", ec);
  // What was found out later lies beside an archive, what was packed with it inside.
  const auto newest = [&](std::string_view name) { return fs::exists(place.file(name), ec) ? place.file(name) : path / name; };
  CUTAWAY_TRY_ASSIGN(subject.certificate, read_evidence(newest("certificate.json"), report::certificate_from_json));
  CUTAWAY_TRY_ASSIGN(subject.ablation, read_evidence(newest("ablation.json"), report::ablation_from_json));
  CUTAWAY_TRY_ASSIGN(subject.analysis, read_evidence(newest("analysis.json"), report::analysis_from_json));
  CUTAWAY_TRY_ASSIGN(subject.bisection, read_evidence(newest("bisect.json"), report::bisection_from_json));
  CUTAWAY_TRY_ASSIGN(subject.profile, read_evidence(newest("profile.json"), report::profile_from_json));
  const std::vector<report::File> files = report::make_report(subject);
  for (const report::File& f : files) CUTAWAY_TRY(base::write_file_atomic(place.file(f.path), f.text, base::Sync::fast));
  return place.file(files.front().path);
}

}  // namespace cutaway::flows
