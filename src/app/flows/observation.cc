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
#include "core/base/text.h"
#include "core/bundle/signature_json.h"

namespace cutaway::flows {

namespace fs = std::filesystem;
namespace {

constexpr size_t kLogTail = 16'000;

SourceLine line_of(const debug::StoredEvent& event, const std::string& key) {
  return {debug::text_or(event, key + ".file"), debug::text_or(event, key + ".function"), debug::text_or(event, key + ".text"), debug::integer_or(event, key + ".line")};
}

bundle::FailureSignature signature_of(const debug::StoredEvent& event) {
  bundle::FailureSignature s;
  bundle::for_each_field(s, [&](const char* name, std::string& text) { text = debug::text_or(event, std::string("signature.") + name); });
  return s;
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
  CUTAWAY_TRY_ASSIGN(const std::vector<debug::StoredEvent> events, stream_.read(more, place));
  for (const debug::StoredEvent& event : events) CUTAWAY_TRY(take(event, place));
  return {};
}

base::Status EventReader::take(const debug::StoredEvent& event, std::string_view place) {
  has_events_ = true;
  const std::string& name = event.name;
  const int64_t process = event.pid;
  if (event.topic != "observe") {   // somebody else's, in the same stream
  } else if (event.kind == "begin") {
    const Phase phase{process, event.phase, name, debug::text_or(event, "graph"), event.time_us};
    open_.push_back(phase);
    if (!phase.graph.empty()) last_graph_ = {process, phase.graph};
    if (phase.what == "compile") {
      Observation& g = graphs_[{process, phase.graph}];
      g.backend = debug::text_or(event, "backend");
      g.has_aot_stage = debug::flag_or(event, "has_aot");
      g.call = line_of(event, "call");
      g.process = debug::text_or(event, "process");
      g.is_own = debug::text_or(event, "capture") == "cutaway";
    }
  } else if (event.kind == "end") {
    std::erase_if(open_, [&](const Phase& p) {
      if (p.process != process || p.number != event.phase) return false;
      longest_phase_s_ = std::max(longest_phase_s_, static_cast<double>(event.time_us - p.begin_us) / 1e6);
      return true;
    });
  } else if (name == "script") {
    threads_ = debug::integer_or(event, "threads", 1);
    has_started_ = true;
  } else if (name == "bundle") {
    const std::string graph = debug::text_or(event, "graph"), path = debug::text_or(event, "path");
    graphs_[{process, graph}].bundle = path;
    const auto known = std::find_if(bundles_.begin(), bundles_.end(), [&](const auto& b) { return b.first == graph; });
    if (known == bundles_.end()) bundles_.emplace_back(graph, path);
    else known->second = path;
  } else if (name == "copy") {
    copies_[{process, debug::text_or(event, "graph")}] = debug::text_or(event, "address");
  } else if (name == "unwatched") {
    unwatched_.push_back(debug::text_or(event, "backend") + ": " + debug::text_or(event, "problem"));
  } else if (name == "verdict") {
    judged_.push_back({debug::text_or(event, "graph"), debug::text_or(event, "outcome"), debug::text_or(event, "reason"), debug::text_or(event, "bundle")});
  } else if (name == "finished") {
    finished_ = event;
  } else if (name == "failure") {
    if (failure_) return {};   // the first one counts
    Observation f;
    f.phase = debug::text_or(event, "stage") == "capture" ? "capture" : "run";
    f.graph = debug::text_or(event, "graph");
    f.backend = debug::text_or(event, "backend");
    f.bundle = debug::text_or(event, "bundle");
    f.problem = debug::text_or(event, "problem");
    f.message = debug::text_or(event, "message");
    f.process = debug::text_or(event, "process");
    f.is_own = debug::text_or(event, "capture") == "cutaway";
    f.call = line_of(event, "call");
    f.line = line_of(event, "line");
    f.frame_source = debug::text_or(event, "frame.source");
    f.signature = signature_of(event);
    if (const auto it = graphs_.find({process, f.graph}); it != graphs_.end()) f.has_aot_stage = it->second.has_aot_stage;
    if (const auto it = copies_.find({process, f.graph}); it != copies_.end()) f.copy = it->second;
    failure_ = std::move(f);
  } else {
    return base::Error{"unknown event " + base::quote(name), std::string(place), "the observer is of another version than this command", "install cutaway again, with `make build`", ""};
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
      o.status = static_cast<int>(debug::integer_or(*finished_, "status"));
      o.raised = debug::flag_or(*finished_, "raised");
      o.threads_left = debug::text_or(*finished_, "threads");
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
  if (exit && !reader.has_events() && !exit->ok())
    return base::Error{"the script could not be observed", programs.python, o.log_tail, "cutaway doctor", ""};
  return o;
}

}  // namespace cutaway::flows
