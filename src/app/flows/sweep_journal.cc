#include "app/flows/sweep_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/bundle/signature_json.h"

namespace cutaway::flows {

using base::Json;

namespace {

constexpr int kFormat = 1;

SweepCell cell_from(const Json& j) {
  SweepCell c;
  c.subject = j.text_or("subject");
  c.backend = j.text_or("backend");
  c.dtype = j.text_or("dtype");
  c.batch = j.integer_or("batch");
  c.mode = j.text_or("mode");
  c.graph = j.text_or("graph");
  c.outcome = j.text_or("outcome");
  if (const Json* signature = j.find("signature")) c.signature = bundle::signature_from(*signature);
  c.message = j.text_or("message");
  c.eager_ms = j.number_or("eager_ms");
  c.compile_ms = j.number_or("compile_ms");
  c.run_ms = j.number_or("run_ms");
  return c;
}

SweepFailure failure_from(const Json& j) {
  SweepFailure f;
  f.description = j.text_or("failure");
  f.backend = j.text_or("backend");
  f.bundle = j.text_or("bundle");
  f.repro = j.text_or("repro");
  f.report = j.text_or("report");
  f.graph = j.text_or("graph");
  f.nodes = static_cast<uint64_t>(j.integer_or("nodes"));
  f.is_verified = j.flag_or("verified");
  f.note = j.text_or("note");
  f.cells = j.texts_or_none("cells");
  return f;
}

}  // namespace

Json cell_to_json(const SweepCell& c) {
  Json::Object j{{"subject", c.subject}, {"backend", c.backend}, {"dtype", c.dtype}, {"batch", c.batch}, {"mode", c.mode}, {"graph", c.graph}, {"outcome", c.outcome}, {"message", c.message},
                 {"eager_ms", c.eager_ms}, {"compile_ms", c.compile_ms}, {"run_ms", c.run_ms}};
  j["signature"] = c.signature.kind.empty() ? Json() : bundle::signature_json(c.signature);
  return Json(std::move(j));
}

Json failure_to_json(const SweepFailure& f) {
  Json::Array cells;
  for (const std::string& key : f.cells) cells.emplace_back(key);
  return Json::Object{{"failure", f.description}, {"backend", f.backend}, {"bundle", f.bundle}, {"repro", f.repro}, {"report", f.report}, {"graph", f.graph}, {"nodes", f.nodes}, {"verified", f.is_verified},
                      {"note", f.note}, {"cells", std::move(cells)}};
}

base::Result<SweepJournal> SweepJournal::open(const std::filesystem::path& path, const std::string& question, bool resume) {
  SweepJournal journal;
  journal.path_ = path;
  std::error_code ec;
  const bool exists = std::filesystem::exists(path, ec);
  if (exists && !resume)
    return base::Error{"there is a sweep in this folder already", path.parent_path().string(), "", "--resume to go on with it, or -o for another folder", ""};
  size_t good = 0;   // bytes of whole lines
  if (exists) {
    CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(path));
    for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = good = end + 1) {
      CUTAWAY_TRY_ASSIGN(const Json line, Json::parse(std::string_view(text).substr(at, end - at), path.string()));
      if (at == 0) {
        if (line.integer_or("format") != kFormat) return base::Error{"this sweep was written by another version", path.string(), "", "begin a new one with -o", ""};
        if (line.text_or("question") != question)
          return base::Error{"the sweep in this folder compares in another way", path.string(), "it was begun with " + line.text_or("question") + ", and this is " + question, "the same options, or -o for another folder", ""};
      } else if (const Json* cell = line.find("cell")) {
        SweepCell c = cell_from(*cell);
        journal.cells_[c.key()] = std::move(c);
      } else if (const Json* failure = line.find("reduced")) {
        journal.reduced_[line.text_or("of")] = failure_from(*failure);
      }
    }
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return base::os_error(path, "cannot write the journal", errno);
  journal.file_ = base::FileDescriptor(fd);
  if (::ftruncate(fd, static_cast<off_t>(good)) != 0 || ::lseek(fd, 0, SEEK_END) < 0) return base::os_error(path, "cannot write the journal", errno);
  if (good == 0) CUTAWAY_TRY(journal.append(Json(Json::Object{{"format", kFormat}, {"question", question}}).text()));
  return journal;
}

base::Status SweepJournal::append(const std::string& line) {
  const std::string text = line + "\n";
  return base::write_all(file_.get(), text.data(), text.size(), path_);
}

const SweepCell* SweepJournal::cell(const std::string& key) const {
  const auto found = cells_.find(key);
  return found == cells_.end() ? nullptr : &found->second;
}
const SweepFailure* SweepJournal::reduced(const std::string& key) const {
  const auto found = reduced_.find(key);
  return found == reduced_.end() ? nullptr : &found->second;
}
base::Status SweepJournal::add(const SweepCell& c) {
  cells_[c.key()] = c;
  return append(Json(Json::Object{{"cell", cell_to_json(c)}}).text());
}
base::Status SweepJournal::add(const std::string& key, const SweepFailure& f) {
  reduced_[key] = f;
  return append(Json(Json::Object{{"of", key}, {"reduced", failure_to_json(f)}}).text());
}

}  // namespace cutaway::flows
