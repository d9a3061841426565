#include "core/debug/debug_directory.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "core/base/text.h"
#include "core/debug/log.h"
#include "core/debug/topics.h"

namespace cutaway::debug {
namespace fs = std::filesystem;
namespace {

constexpr DirectoryFile kFiles[] = {
    {"events", Ladder::summary, "events.jsonl: the stream that everything else is a view of"},
    {"debug", Ladder::summary, "debug.log: the log of a component, and of a graph"},
    {"times", Ladder::summary, "how long each phase took"},
    {"breaks", Ladder::reasons, "graph breaks with their reasons"},
    {"guards", Ladder::reasons, "what the compiled function depends on"},
    {"fusion", Ladder::reasons, "what was fused, what was not, and why"},
    {"bytecode", Ladder::graphs, "original and modified bytecode"},
    {"graph", Ladder::graphs, "the graph in its own text form"},
    {"joint_graph", Ladder::graphs, "forward and backward before the split"},
    {"fx_graph_readable", Ladder::graphs, "the graph as Python to read"},
    {"fx_graph_runnable", Ladder::graphs, "the graph as a script that runs with torch alone"},
    {"fx_graph_transformed", Ladder::graphs, "the graph after the passes, as code generation receives it"},
    {"ir_pre_fusion", Ladder::code, "the graph after rewrites, before fusion"},
    {"ir_post_fusion", Ladder::code, "the fused graph: kernels as calls with their regions"},
    {"output_code", Ladder::code, "generated code, as a program that compiles and runs by itself"},
    {"memory_plan", Ladder::everything, "buffers and when they live"},
    {"instructions", Ladder::everything, "the compiled graph as it is executed, one line an instruction"},
    {"values", Ladder::everything, "what the compiled graph held in its first run, for the program of output_code"},
    {"profile", Ladder::only_when_asked, "time of each kernel and operator, written when the process ends"},
    {"diagram", Ladder::only_when_asked, "picture of the fused graph"},
};

std::string_view stem_of(std::string_view file) { return file.substr(0, file.find('.')); }

const DirectoryFile* find_file(std::string_view file) {
  const auto it = std::ranges::find(kFiles, stem_of(file), &DirectoryFile::name);
  return it == std::end(kFiles) ? nullptr : it;
}

base::Error unknown_file(std::string_view name, std::string_view place) {
  std::vector<std::string> names;
  for (const DirectoryFile& f : kFiles) names.emplace_back(f.name);
  base::Error e;
  e.place = place;
  e.what = "the debug directory has no file " + base::quote(stem_of(name)) + base::did_you_mean(stem_of(name), names);
  e.hint = "one of " + base::join(names);
  return e;
}

// A graph's or component's name as part of a path: no separators, no leading dot, not too long for a file system.
std::string path_part(std::string_view name) {
  std::string out(name.substr(0, 100));
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  if (out.empty() || out[0] == '.') out.insert(0, "_");
  return out;
}

}  // namespace

std::span<const DirectoryFile> directory_files() { return kFiles; }

base::Result<FileChoice> FileChoice::parse(Ladder ladder, std::string_view words, std::string_view place) {
  FileChoice choice(ladder);
  while (!words.empty()) {
    const size_t comma = std::min(words.find(','), words.size());
    std::string_view word = words.substr(0, comma);
    words.remove_prefix(std::min(comma + 1, words.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (word.empty()) continue;
    const bool on = !word.starts_with('-');
    if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
    const DirectoryFile* file = find_file(word);
    if (!file) return unknown_file(word, place);
    choice.switches_[std::string(file->name)] = on;
  }
  return choice;
}

bool FileChoice::has(std::string_view file) const {
  const DirectoryFile* known = find_file(file);
  if (!known || ladder_ == Ladder::off) return false;
  if (const auto it = switches_.find(known->name); it != switches_.end()) return it->second;
  return ladder_ >= known->from;
}

std::filesystem::path RunStamp::folder(const std::filesystem::path& root) const {
  return (root / "cutaway_debug" / ("run_" + time + "-pid_" + std::to_string(pid))).lexically_normal();
}

RunStamp RunStamp::now() {
  timeval tv{};
  gettimeofday(&tv, nullptr);
  std::tm parts{};
  localtime_r(&tv.tv_sec, &parts);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y_%m_%d_%H_%M_%S", &parts);
  std::snprintf(text, sizeof text, "%s_%06ld", date, static_cast<long>(tv.tv_usec));
  return {text, ::getpid()};
}

struct DebugDirectory::GraphFolder {
  fs::path path;
  base::FileDescriptor log;
  Timings times;
  std::map<std::string, int, std::less<>> written;   // how often each file name was written
};

DebugDirectory::DebugDirectory(DirectoryOptions options) : options_(std::move(options)) {
  std::error_code ignored;   // a relative root stays where it was when the program changes its directory
  fs::path root = fs::absolute(options_.root.empty() ? "." : options_.root, ignored);
  run_ = options_.stamp.folder(root);
}
DebugDirectory::~DebugDirectory() = default;

bool DebugDirectory::wants(std::string_view, Level level) const {
  if (!options_.files.has("events") && !options_.files.has("debug")) return false;
  return level <= (options_.files.ladder() >= Ladder::everything ? Level::debug : Level::info);
}
bool DebugDirectory::wants_phase(std::string_view topic, Level level) const {
  return wants(topic, level) || (options_.files.has("times") && times_.wants_phase(topic, level));
}

void DebugDirectory::report(base::Error error) {
  if (options_.on_error) options_.on_error(error);
}

base::Status DebugDirectory::create() {
  if (created_.load() || broken_) return {};
  broken_ = true;   // until it is there: a folder that cannot be made is told of once
  CUTAWAY_TRY(base::make_directories(run_, base::Sync::fast));
  if (options_.files.has("events")) {
    EventFileOptions events;
    events.on_error = options_.on_error;
    CUTAWAY_TRY_ASSIGN(events_, open_event_file((run_ / "events.jsonl").string(), std::move(events)));
  }
  broken_ = false;
  created_ = true;
  if (options_.tell) options_.tell("debug directory: " + run_.string());
  return {};
}

base::Result<fs::path> DebugDirectory::component_folder(std::string_view component) {
  fs::path folder = run_ / path_part(component);
  CUTAWAY_TRY(base::make_directories(folder, base::Sync::fast));
  return folder;
}

base::Result<DebugDirectory::GraphFolder*> DebugDirectory::graph_folder(const Place& place) {
  std::unique_ptr<GraphFolder>& folder = folders_[{place.component, place.graph}];
  if (folder) return folder.get();
  CUTAWAY_TRY_ASSIGN(fs::path path, component_folder(place.component));
  if (!place.graph.empty()) {
    std::vector<std::string>& graphs = graphs_[place.component];
    char ordinal[16];
    std::snprintf(ordinal, sizeof ordinal, "%04zu.", graphs.size());
    path /= ordinal + path_part(place.graph);
    CUTAWAY_TRY(base::make_directories(path, base::Sync::fast));
    graphs.push_back(place.graph);
  }
  folder = std::make_unique<GraphFolder>();
  folder->path = std::move(path);
  return folder.get();
}

base::Status DebugDirectory::append_log(const fs::path& folder, base::FileDescriptor& log, std::string_view line) {
  const fs::path path = folder / "debug.log";
  if (!log.is_open()) log = base::FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.is_open()) return base::os_error(path, "cannot be opened", errno);
  return base::write_all(log.get(), line.data(), line.size(), path);
}

base::Status DebugDirectory::write_views(const Event& e) {
  const std::string component(component_of(e.topic));
  const bool begins = e.kind == "begin", ends = e.kind == "end";

  Place place;   // of the graph this happened for: what its phase, or a phase around that, has named
  bool names_graph = false;
  if (begins) {
    if (const FieldView* graph = e.find("graph"); graph && !graph->text().empty()) place = {component, std::string(graph->text())};
    else if (const auto outer = place_of_phase_.find(e.outer); outer != place_of_phase_.end()) place = outer->second;
    if (!place.graph.empty()) place_of_phase_[e.phase] = place;
  } else if (const auto it = place_of_phase_.find(e.phase); it != place_of_phase_.end()) {
    place = it->second;
    if (ends) {
      place_of_phase_.erase(it);
      const auto outer = place_of_phase_.find(e.outer);
      names_graph = outer == place_of_phase_.end() || outer->second.graph != place.graph;
    }
  }

  const bool logs = options_.files.has("debug"), times = options_.files.has("times");
  const std::string line = logs ? log_line(e, {.time = true, .prefix = ""}) : std::string();
  if (logs) {
    base::FileDescriptor& log = component_logs_[component];
    if (!log.is_open()) CUTAWAY_TRY(component_folder(component));
    CUTAWAY_TRY(append_log(run_ / path_part(component), log, line));
  }
  if (times && (begins || ends)) {
    times_.write(e);
    if (ends && e.outer == 0 && times_.wants_phase(e.topic, e.level)) CUTAWAY_TRY(base::write_file_atomic(run_ / "times.txt", times_.text(), base::Sync::fast));
  }
  if (place.graph.empty()) return {};
  CUTAWAY_TRY_ASSIGN(GraphFolder* graph, graph_folder(place));
  if (logs) CUTAWAY_TRY(append_log(graph->path, graph->log, line));
  if (times && (begins || ends)) {
    graph->times.write(e);
    if (names_graph) CUTAWAY_TRY(base::write_file_atomic(graph->path / "times.txt", graph->times.text(), base::Sync::fast));
  }
  return {};
}

void DebugDirectory::write(const Event& e) {
  const bool is_phase = e.kind == "begin" || e.kind == "end";
  if (!(is_phase ? wants_phase(e.topic, e.level) : wants(e.topic, e.level))) return;
  const std::lock_guard lock(mutex_);
  if (base::Status status = create(); !status.ok()) return report(std::move(status).error());
  if (broken_) return;
  if (events_) events_->write(e);
  if (base::Status status = write_views(e); !status.ok()) {
    broken_ = true;   // a full disk fails for every event: once is enough
    report(std::move(status).error());
  }
}

base::Result<std::string> DebugDirectory::write_artifact(const ArtifactText& artifact) {
  if (!find_file(artifact.file)) return unknown_file(artifact.file, "");
  if (!options_.files.has(artifact.file)) return std::string();
  const std::lock_guard lock(mutex_);
  CUTAWAY_TRY(create());
  if (!created_.load()) return std::string();   // was told of already
  CUTAWAY_TRY_ASSIGN(GraphFolder* folder, graph_folder({std::string(artifact.component), std::string(artifact.graph)}));
  const std::string name = path_part(artifact.file), stem(stem_of(name)), ending = name.substr(stem.size());
  int& number = folder->written[name];
  for (;;) {   // O_EXCL: a forked child may have written the next number already
    const std::string numbered = ++number == 1 ? name : stem + "." + std::to_string(number) + ending;
    const fs::path path = folder->path / numbered;
    const base::FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd.is_open() && errno == EEXIST) continue;
    if (!fd.is_open()) return base::os_error(path, "cannot be written", errno);
    CUTAWAY_TRY(base::write_all(fd.get(), artifact.text.data(), artifact.text.size(), path));
    return path.string();
  }
}

std::string DebugDirectory::keep_file(const ArtifactText& artifact) {
  base::Result<std::string> path = write_artifact(artifact);
  if (path.ok()) return *std::move(path);
  report(std::move(path).error());
  return {};
}

}  // namespace cutaway::debug
