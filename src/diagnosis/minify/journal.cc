#include "diagnosis/minify/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/bundle/signature_json.h"

namespace cutaway::minify {
namespace {

constexpr int kJournalVersion = 1;
constexpr const char* kKinds[] = {"same_failure", "other_failure", "passes", "invalid"};   // persisted: do not rename

std::string line_of(const base::Digest& d, const Answer& a) {
  base::Json j = base::Json::Object{{"case", d.hex()}, {"answer", kKinds[static_cast<int>(a.kind)]}, {"reason", a.reason}};
  if (!a.signature.kind.empty()) j["signature"] = bundle::signature_json(a.signature);
  return j.text() + "\n";
}

base::Error not_a_line(std::string place, std::string because) { return {"not a journal line", std::move(place), std::move(because), "remove the journal to start over", ""}; }

base::Result<base::Json> parse_line(const std::string& line, const std::string& place) {
  auto parsed = base::Json::parse(line, place);
  if (!parsed.ok()) return not_a_line(place, parsed.error().what);
  return parsed;
}

base::Status check_first(const std::string& line, const std::string& place, const base::Digest& start) {
  CUTAWAY_TRY_ASSIGN(const base::Json j, parse_line(line, place));
  if (!j.find("journal")) return not_a_line(place, "it has no \"journal\"");
  if (j.integer_or("journal") != kJournalVersion) return base::Error{"journal of an unknown version", place, "", "remove it to start over", ""};
  if (j.text_or("start") != start.hex()) return base::Error{"this journal belongs to another reduction", place, "it began with another graph, inputs, backend or failure", "give another output directory, or leave out --resume", ""};
  return {};
}

base::Status take_line(const std::string& line, const std::string& place, std::unordered_map<base::Digest, Answer>& answers) {
  CUTAWAY_TRY_ASSIGN(const base::Json j, parse_line(line, place));
  for (const char* key : {"answer", "case", "reason"})
    if (!j.find(key) || !j.find(key)->as<std::string>()) return not_a_line(place, std::string("it has no text \"") + key + "\"");
  const std::string kind = j.text_or("answer");
  const auto found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) return base::Error{"unknown answer \"" + kind + "\"", place, "", "remove the journal to start over", ""};
  Answer a;
  a.kind = static_cast<Answer::Kind>(found - std::begin(kKinds));
  a.reason = j.text_or("reason");
  if (const base::Json* signature = j.find("signature")) a.signature = bundle::signature_from(*signature);
  auto d = base::Digest::parse(j.text_or("case"));
  if (!d.ok()) return std::move(d).error().at(place);
  answers[*d] = std::move(a);
  return {};
}

// A full disk takes a part of the line first, without an error.
base::Status write_whole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::os_error(path, "cannot write the journal", errno);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

base::Result<Journal> Journal::open(const std::string& path, const base::Digest& start) {
  Journal journal;
  journal.path_ = path;
  std::ifstream in(path, std::ios::binary);
  off_t good = 0;
  if (in) {
    std::string line;
    int number = 0;
    while (std::getline(in, line)) {
      if (in.eof()) break;   // no newline: the writer was killed in the middle of this line
      ++number;
      const std::string place = path + ":" + std::to_string(number);
      base::Status taken = number == 1 ? check_first(line, place, start) : take_line(line, place, journal.answers_);
      if (!taken.ok()) return std::move(taken).error();
      good = in.tellg();
    }
  }
  journal.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (journal.fd_ < 0) return base::Error{"cannot open the journal", path, std::strerror(errno), "", ""};
  if (::ftruncate(journal.fd_, good) != 0 || ::lseek(journal.fd_, 0, SEEK_END) < 0) return base::Error{"cannot write the journal", path, std::strerror(errno), "", ""};
  if (good == 0) {
    const std::string first = base::Json(base::Json::Object{{"journal", kJournalVersion}, {"start", start.hex()}}).text() + "\n";
    CUTAWAY_TRY(write_whole(journal.fd_, first, path));
  }
  return journal;
}

Journal::Journal(Journal&& o) noexcept : answers_(std::move(o.answers_)), fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)) {}
Journal& Journal::operator=(Journal&& o) noexcept {
  std::swap(answers_, o.answers_);
  std::swap(fd_, o.fd_);
  std::swap(path_, o.path_);
  return *this;
}
Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

const Answer* Journal::find(const base::Digest& d) const {
  auto it = answers_.find(d);
  return it == answers_.end() ? nullptr : &it->second;
}

base::Status Journal::add(const base::Digest& d, const Answer& a) {
  answers_[d] = a;
  if (fd_ < 0) return {};
  const std::string line = line_of(d, a);
  base::Status written = write_whole(fd_, line, path_);
  if (written.ok()) return {};
  base::Error error = std::move(written).error();
  error.hint += (error.hint.empty() ? "" : "; ") + std::string("--resume goes on from here");
  return error;
}

}  // namespace cutaway::minify
