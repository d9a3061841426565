#include "app/flows/observation.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "core/base/processor.h"
#include "core/bundle/signature_json.h"

namespace cutaway::flows {

using base::Json;
namespace fs = std::filesystem;
namespace {

constexpr size_t kLogTail = 16'000;

SourceLine line_of(const Json& event, std::string_view key) {
  const Json* f = event.find(key);
  if (!f) return {};
  return {f->text_or("file"), f->text_or("function"), f->text_or("text"), f->integer_or("line")};
}

base::Result<std::string> read_from(const fs::path& path, uint64_t offset) {
  base::FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) {
    if (errno == ENOENT) return std::string();   // the observer has not come that far
    return base::os_error(path, "cannot read the events", errno);
  }
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::pread(fd.get(), buffer, sizeof buffer, static_cast<off_t>(offset + out.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::os_error(path, "cannot read the events", errno);
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
  }
}

std::string tail_of(const fs::path& path) {
  std::error_code ec;
  const uint64_t size = fs::file_size(path, ec);
  if (ec) return {};
  auto text = read_from(path, size > kLogTail ? size - kLogTail : 0);
  return text.ok() ? *text : std::string();
}

// A run whose files could not be written says nothing about the script.
base::Status check_room(const fs::path& folder, bool is_known) {
  struct statvfs room {};
  struct rlimit limit {};
  constexpr uint64_t kLeast = 1 << 16;
  if (::statvfs(folder.c_str(), &room) == 0 && uint64_t{room.f_bavail} * room.f_frsize < kLeast) return base::os_error(folder, "the run's files cannot be written", ENOSPC);
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    std::error_code ec;
    for (const fs::directory_entry& file : fs::directory_iterator(folder, ec))
      if (file.is_regular_file(ec) && file.file_size(ec) + 1024 > limit.rlim_cur) return base::os_error(file.path(), "the run's files cannot be written", EFBIG);
    if (is_known) return base::os_error(folder, "the run's files cannot be written", EFBIG);
  }
  if (is_known) return base::Error{"the run's files cannot be written", folder.string(), "", "-o with a folder elsewhere", ""};
  return {};
}

}  // namespace

std::string SourceLine::place() const { return file.empty() ? "" : fs::path(file).filename().string() + ":" + std::to_string(line); }

base::Status EventReader::read(std::string_view more, std::string_view place) {
  rest_ += more;
  for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
    ++line_;
    const std::string at = std::string(place) + ":" + std::to_string(line_);
    CUTAWAY_TRY_ASSIGN(Json event, Json::parse(std::string_view(rest_).substr(0, end), at));
    CUTAWAY_TRY(take(event, at));
  }
  return {};
}

base::Status EventReader::take(const Json& event, std::string_view place) {
  const std::string kind = event.text_or("event");
  const int64_t process = event.integer_or("pid");
  if (kind == "script") {
    threads_ = event.integer_or("threads", 1);
    has_started_ = true;
  } else if (kind == "begin") {
    const Phase phase{process, event.integer_or("phase"), event.text_or("what"), event.text_or("graph"), event.number_or("time")};
    open_.push_back(phase);
    if (!phase.graph.empty()) last_graph_ = {process, phase.graph};
    if (phase.what == "compile") {
      Observation& g = graphs_[{process, phase.graph}];
      g.backend = event.text_or("backend");
      g.has_aot_stage = event.flag_or("has_aot");
      g.call = line_of(event, "call");
      g.process = event.text_or("process");
      g.is_own = event.text_or("capture") == "cutaway";
    }
  } else if (kind == "end") {
    std::erase_if(open_, [&](const Phase& p) {
      if (p.process != process || p.number != event.integer_or("phase")) return false;
      longest_phase_s_ = std::max(longest_phase_s_, event.number_or("time") - p.begin);
      return true;
    });
  } else if (kind == "bundle") {
    const std::string graph = event.text_or("graph"), path = event.text_or("path");
    graphs_[{process, graph}].bundle = path;
    const auto known = std::find_if(bundles_.begin(), bundles_.end(), [&](const auto& b) { return b.first == graph; });
    if (known == bundles_.end()) bundles_.emplace_back(graph, path);
    else known->second = path;
  } else if (kind == "copy") {
    copies_[{process, event.text_or("graph")}] = event.text_or("address");
  } else if (kind == "unwatched") {
    unwatched_.push_back(event.text_or("backend") + ": " + event.text_or("problem"));
  } else if (kind == "verdict") {
    judged_.push_back({event.text_or("graph"), event.text_or("outcome"), event.text_or("reason"), event.text_or("bundle")});
  } else if (kind == "finished") {
    finished_ = event;
  } else if (kind == "failure") {
    if (failure_) return {};   // the first one counts
    Observation f;
    f.phase = event.text_or("stage") == "capture" ? "capture" : "run";
    f.graph = event.text_or("graph");
    f.backend = event.text_or("backend");
    f.bundle = event.text_or("bundle");
    f.problem = event.text_or("problem");
    f.message = event.text_or("message");
    f.process = event.text_or("process");
    f.is_own = event.text_or("capture") == "cutaway";
    f.call = line_of(event, "call");
    f.line = line_of(event, "line");
    if (const Json* frame = event.find("frame")) f.frame_source = frame->text_or("source");
    if (const Json* s = event.find("signature")) f.signature = bundle::signature_from(*s);
    if (const auto it = graphs_.find({process, f.graph}); it != graphs_.end()) f.has_aot_stage = it->second.has_aot_stage;
    if (const auto it = copies_.find({process, f.graph}); it != copies_.end()) f.copy = it->second;
    failure_ = std::move(f);
  } else {
    return base::Error{"unknown event " + base::json_text(kind), std::string(place), "the observer is of another version than this command", "install cutaway again, with `make build`", ""};
  }
  return {};
}

bool EventReader::note_dead_processes(const std::function<bool(int64_t)>& is_alive) {
  for (const Phase& p : open_)
    if (!is_alive(p.process)) dead_ = p;   // the last one that it began
  if (dead_) std::erase_if(open_, [&](const Phase& p) { return p.process == dead_->process; });
  return dead_.has_value();
}

void EventReader::describe(Observation& o) const {
  const auto ending = o.ending;
  if (failure_) {
    const Observation kept = o;
    o = *failure_;
    o.seconds = kept.seconds;
    o.log_tail = kept.log_tail;
    o.ending = Observation::Ending::failed;
  } else {
    const Phase* phase = dead_ ? &*dead_ : open_.empty() ? nullptr : &open_.back();
    o.phase = phase ? phase->what : "";
    const GraphKey key = phase && !phase->graph.empty() ? GraphKey{phase->process, phase->graph} : last_graph_;
    o.graph = key.second;
    if (const auto it = graphs_.find(key); it != graphs_.end()) {
      o.backend = it->second.backend;
      o.call = it->second.call;
      o.bundle = it->second.bundle;
      o.process = it->second.process;
      o.has_aot_stage = it->second.has_aot_stage;
      o.is_own = it->second.is_own;
    }
    if (const auto it = copies_.find(key); it != copies_.end()) o.copy = it->second;
    if (finished_ && ending == Observation::Ending::finished) {
      o.status = static_cast<int>(finished_->integer_or("status"));
      o.raised = finished_->flag_or("raised");
      o.threads_left = finished_->text_or("threads");
    }
  }
  o.graphs = static_cast<int64_t>(graphs_.size());
  o.threads = threads_;
  o.longest_phase_s = longest_phase_s_;
  o.unwatched = unwatched_;
  o.judged = judged_;
  o.bundles = bundles_;
}

base::Result<Observation> observe(const Programs& programs, const ObserveOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  CUTAWAY_TRY(base::make_directories(options.folder, base::Sync::fast));
  const fs::path events = options.folder / "events.jsonl", log = options.folder / "script.log";
  base::Command command;
  command.argv = {programs.python, "-m", "cutaway.observe", "--events", events.string(), "--folder", options.folder.string(), "--level", std::to_string(options.level), "--after", options.after};
  if (options.check_calls > 0) command.argv.insert(command.argv.end(), {"--check-calls", std::to_string(options.check_calls)});
  if (!options.backend.empty()) command.argv.insert(command.argv.end(), {"--backend", options.backend});
  if (options.is_compile_off) command.argv.push_back("--eager");
  if (options.max_bytes > 0) command.argv.insert(command.argv.end(), {"--memory", std::to_string(options.max_bytes)});
  if (options.input) command.argv.insert(command.argv.end(), {"--input", fs::absolute(options.input->kept()).string()});
  if (!options.shown_as.empty()) command.argv.push_back("--shown-as=" + options.shown_as);
  if (options.draws_as_eager) command.argv.push_back("--draw-as-eager");
  command.argv.push_back("--");
  command.argv.insert(command.argv.end(), options.script.begin(), options.script.end());
  command.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"};
  command.environment = {{"PYTHONUNBUFFERED", "1"}};
  base::FileDescriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0644));
  if (!out.is_open()) return base::os_error(log, "cannot write the script's output", errno);
  std::vector<std::pair<int, int>> descriptors{{out.get(), 1}, {out.get(), 2}};
  base::FileDescriptor in;
  if (options.input) {
    CUTAWAY_TRY_ASSIGN(in, options.input->begin());
    descriptors.emplace_back(in.get(), 0);
  }
  CUTAWAY_TRY_ASSIGN(base::Process process, programs.start(command, descriptors));
  in.close();

  EventReader reader;
  Observation o;
  uint64_t offset = 0;
  auto last_sign = Clock::now(), last_said = begin;
  std::chrono::milliseconds waited_by_then{0};   // for a processor, by the script
  constexpr std::chrono::seconds kSayEvery{60}, kEndsWithin{10};
  constexpr int64_t kStartsWithin = 180'000;   // Python and torch, on a machine that is busy
  std::optional<base::Exit> exit;
  uint64_t log_size = 0;
  const auto read_more = [&]() -> base::Status {
    CUTAWAY_TRY_ASSIGN(std::string more, read_from(events, offset));
    std::error_code ec;
    const uint64_t printed = fs::file_size(log, ec);
    if (!more.empty() || (!reader.is_in_phase() && printed != log_size)) {
      last_sign = Clock::now();
      waited_by_then = base::group_waited_for_processor(process.pid());
    }
    log_size = printed;
    offset += more.size();
    return reader.read(more, events.string());
  };
  const auto is_silent_for = [&](int64_t ms) {
    base::WorkLimit limit(std::chrono::milliseconds(ms), last_sign, waited_by_then);
    return Clock::now() >= limit.end() && limit.is_over(process.pid());
  };
  while (!exit) {
    CUTAWAY_TRY_ASSIGN(exit, process.wait(std::chrono::milliseconds(100)));
    if (options.input) CUTAWAY_TRY(options.input->pump());
    CUTAWAY_TRY(read_more());
    if (exit) break;
    reader.note_dead_processes([&](int64_t p) {
      if (p != process.pid()) ::waitpid(static_cast<pid_t>(p), nullptr, WNOHANG);   // orphans of the script may have become ours
      return ::kill(static_cast<pid_t>(p), 0) == 0;
    });
    if (reader.has_failure()) {   // all that is wanted is on disk; the rest of the script could take hours
      o.ending = Observation::Ending::failed;
    } else if (reader.is_finished()) {
      if (!is_silent_for(kEndsWithin.count() * 1000)) continue;   // what runs at its end, threads that are about to end
    } else if (reader.is_in_phase() ? is_silent_for(options.timeout_ms) : options.quiet_ms > 0 && is_silent_for(reader.has_started() ? options.quiet_ms : std::max(options.quiet_ms, kStartsWithin))) {
      o.ending = Observation::Ending::hung;
    } else if (options.is_interrupted && options.is_interrupted()) {
      o.ending = Observation::Ending::interrupted;
    } else {
      if (options.on_step && Clock::now() - last_said > kSayEvery) {   // training may take hours, and nobody knows it from a hang
        last_said = Clock::now();
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(last_said - begin).count();
        options.on_step(options.script.front() + " is still running, after " + std::to_string(seconds) + " s (Ctrl-C ends it)");
      }
      continue;
    }
    process.kill_group();
    CUTAWAY_TRY(process.wait());
    break;
  }
  if (options.input) options.input->end();
  o.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  o.log_tail = tail_of(log);
  if (exit) {
    const bool is_dead = reader.note_dead_processes([](int64_t) { return false; });
    const bool went_well = reader.is_finished() && exit->ok();   // processes that it left in the middle of something are its own affair
    if (exit->kind == base::Exit::Kind::signaled) {
      o.ending = Observation::Ending::died;
      o.signal = base::signal_name(exit->code);
    } else if (is_dead && !went_well) {   // the first process in the middle of something, or one that it started: of that one nobody knows how
      o.ending = Observation::Ending::died;
      if (!reader.is_finished()) o.signal = "exit " + std::to_string(exit->code);
    } else {
      o.status = exit->code;
    }
  }
  constexpr int kCannotWrite = 97;   // observe.CANNOT_WRITE
  CUTAWAY_TRY(check_room(options.folder, exit && exit->kind == base::Exit::Kind::exited && exit->code == kCannotWrite));
  reader.describe(o);
  if (exit) o.threads_left.clear();
  if (exit && offset == 0 && !exit->ok())
    return base::Error{"the script could not be observed", programs.python, o.log_tail, "cutaway doctor", ""};
  return o;
}

}  // namespace cutaway::flows
