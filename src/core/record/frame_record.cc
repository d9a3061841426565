#include "core/record/frame_record.h"

#include <set>

#include "core/base/files.h"
#include "core/base/text.h"

namespace cutaway::record {

namespace fs = std::filesystem;
using base::Result;
using base::Status;

namespace {
constexpr uint64_t kMostBytes = uint64_t{1} << 28;
}

Status write_record(const fs::path& directory, const FrameRecord& r) { return base::write_file_atomic(directory / "record.json", to_json(r)); }

Result<store::Store> open_blobs(const fs::path& directory) { return store::Store::open(directory, store::Store::Open::existing_or_empty); }

Result<FrameRecord> read_record(const fs::path& directory) {
  const fs::path file = directory / "record.json";
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(file, kMostBytes, base::Links::refuse));
  CUTAWAY_TRY_ASSIGN(FrameRecord r, from_json(text, file.string()));
  CUTAWAY_TRY_ASSIGN(const store::Store blobs, open_blobs(directory));
  for (size_t i = 0; i < r.objects.size(); ++i) {
    const Object& o = r.objects[i];
    if (o.blob.is_none()) continue;
    if (auto size = blobs.size_of(o.blob); !size.ok())
      return base::Error{size.error().what + " (object " + std::to_string(i) + ", " + o.kind + (o.name.empty() ? "" : " of " + o.name) + ")", file.string(), size.error().because, "copy blobs/ from the machine that wrote it"};
  }
  for (size_t i = 0; i < r.tensors.size(); ++i)
    if (const bundle::InputRef& t = r.tensors[i]; t.kind == bundle::InputRef::Kind::data)
      if (auto there = blobs.check_size(t.tensor.storage, t.tensor.storage_bytes); !there.ok())
        return base::Error{there.error().what + " (tensor " + std::to_string(i) + ", " + ir::Type::of(t.tensor.type()).text() + ")", file.string(), there.error().because, "copy blobs/ from the machine that wrote it"};
  return r;
}

bool looks_like_record(const fs::path& directory) {
  std::error_code ec;
  return fs::is_regular_file(directory / "record.json", ec);
}

std::vector<std::string> imported_modules(const FrameRecord& r) {
  std::set<std::string> all;
  for (const Object& o : r.objects)
    if (o.kind == "import" || o.kind == "library_namespace") all.insert(o.module);
  return {all.begin(), all.end()};
}

std::string summary(const FrameRecord& r) {
  std::string out = r.function + " (" + r.file + ":" + std::to_string(r.line) + ")";
  out += "\nfailure    " + r.failure.kind + (r.failure.id.empty() || r.failure.id == r.failure.kind ? "" : " [" + r.failure.id + "]") + ": " + r.failure.what;
  if (!r.failure.instruction.empty()) out += "\nat         " + r.failure.instruction;
  for (const StackFrame& s : r.failure.stack) {
    out += "\n           " + s.file + ":" + std::to_string(s.line) + " in " + s.function;
    if (!s.text.empty()) out += "\n             " + s.text;
  }
  uint64_t bytes = 0, seeded = 0;
  for (const bundle::InputRef& t : r.tensors) {
    bytes += t.kind == bundle::InputRef::Kind::data ? t.tensor.storage_bytes : 0;
    seeded += t.kind != bundle::InputRef::Kind::data;
  }
  out += "\nholds      " + base::count_of(r.objects.size(), "object") + ", " + base::count_of(r.tensors.size(), "tensor") + " (" + base::human_bytes(bytes) + ")";
  if (seeded) out += ", " + std::to_string(seeded) + " of them without their data";
  if (!r.results.empty()) out += ", " + base::count_of(r.results.size(), "result") + " of calls";
  const std::vector<std::string> modules = imported_modules(r);
  if (!modules.empty()) out += "\nimports    " + base::join(modules);
  for (const auto& [name, version] : r.versions) out += "\n" + name + std::string(name.size() < 11 ? 11 - name.size() : 1, ' ') + version;
  std::map<std::string, std::pair<uint64_t, std::string>> opaque;
  for (const Object& o : r.objects)
    if (o.kind == "opaque") {
      auto& row = opaque[o.text];
      ++row.first;
      row.second = o.because;
    }
  for (const auto& [type, row] : opaque) out += "\nleft out   " + std::to_string(row.first) + " of type " + type + ": " + row.second;
  return out;
}

}  // namespace cutaway::record
