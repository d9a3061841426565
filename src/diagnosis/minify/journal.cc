#include "diagnosis/minify/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/files.h"

namespace cutaway::minify {
namespace {

constexpr int kJournalVersion = 1;
constexpr const char* kKinds[] = {"same_failure", "other_failure", "passes", "invalid"};   // persisted: do not rename

std::string line_of(const base::Digest& d, const Answer& a) {
  const auto& s = a.signature;
  nlohmann::json j = {{"case", d.hex()}, {"answer", kKinds[static_cast<int>(a.kind)]}, {"reason", a.reason}};
  if (!s.kind.empty())
    j["signature"] = {{"kind", s.kind}, {"stage", s.stage}, {"type", s.type}, {"op", s.op}, {"signal", s.signal}, {"message", s.message}, {"user_frame", s.user_frame}};
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
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
      auto j = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      const std::string place = path + ":" + std::to_string(number);
      try {
        if (number == 1) {
          if (j.at("journal").get<int>() != kJournalVersion) return base::Error{"journal of an unknown version", place, "", "remove it to start over", ""};
          if (j.at("start").get<std::string>() != start.hex()) return base::Error{"this journal belongs to another reduction", place, "it began with another graph, inputs, backend or failure", "give another output directory, or leave out --resume", ""};
        } else {
          Answer a;
          const std::string kind = j.at("answer").get<std::string>();
          size_t k = 0;
          while (k < std::size(kKinds) && kind != kKinds[k]) ++k;
          if (k == std::size(kKinds)) return base::Error{"unknown answer \"" + kind + "\"", place, "", "remove the journal to start over", ""};
          a.kind = static_cast<Answer::Kind>(k);
          a.reason = j.at("reason").get<std::string>();
          if (j.contains("signature")) {
            const auto& s = j["signature"];
            auto text = [&](const char* key) { return s.at(key).get<std::string>(); };
            a.signature = {text("kind"), text("stage"), text("type"), text("op"), text("signal"), text("message"), text("user_frame")};
          }
          auto d = base::Digest::parse(j.at("case").get<std::string>());
          if (!d.ok()) return std::move(d).error().at(place);
          journal.answers_[*d] = std::move(a);
        }
      } catch (const nlohmann::json::exception& e) {
        return base::Error{"not a journal line", place, e.what(), "remove the journal to start over", ""};
      }
      good = in.tellg();
    }
  }
  journal.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (journal.fd_ < 0) return base::Error{"cannot open the journal", path, std::strerror(errno), "", ""};
  if (::ftruncate(journal.fd_, good) != 0 || ::lseek(journal.fd_, 0, SEEK_END) < 0) return base::Error{"cannot write the journal", path, std::strerror(errno), "", ""};
  if (good == 0) {
    const std::string first = nlohmann::json{{"journal", kJournalVersion}, {"start", start.hex()}}.dump() + "\n";
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
