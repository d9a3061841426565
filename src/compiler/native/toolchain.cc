#include "compiler/native/toolchain.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <semaphore>
#include <thread>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/base/text.h"

namespace cutaway::native {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::Status;

/// A compiler that hangs is given up after a minute; CUTAWAY_COMPILE_SECONDS says otherwise.
std::chrono::milliseconds compile_limit() {
  const char* given = std::getenv("CUTAWAY_COMPILE_SECONDS");
  const double seconds = given ? std::strtod(given, nullptr) : 0;
  return std::chrono::milliseconds(seconds > 0 ? static_cast<int64_t>(seconds * 1000) : 60000);
}
constexpr uint64_t kMostCached = uint64_t{1} << 30;   ///< bytes; the files that were used longest ago go first

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The first complaint of a compiler: before it stands in which function it was.
std::string first_error(const std::string& text) {
  const size_t at = text.find("error:");
  if (at == text.npos) return first_line(text);
  const size_t start = text.rfind('\n', at);
  return first_line(text.substr(start == text.npos ? 0 : start + 1));
}

Result<Toolchain> find_toolchain() {
  std::vector<std::string> candidates = {"g++", "clang++"};
  if (const char* chosen = std::getenv("CUTAWAY_CXX"); chosen && *chosen) candidates = {chosen};
  for (const std::string& name : candidates) {
    base::RunLimits limits;
    limits.time = std::chrono::seconds(20);
    const auto said = base::run_command({.argv = {name, "--version"}}, {}, limits);
    if (!said.ok() || !said->exit.ok()) continue;
    Toolchain t;
    t.compiler = name;
    t.version = first_line(said->out);
    return t;
  }
  return Error{.what = "there is no C++ compiler", .because = "looked for " + base::join(candidates), .hint = "install g++, or set CUTAWAY_CXX to a compiler; until then graphs run as torch's own operators"};
}

/// A file whose digest stands beside it: half a file, or another one, is found.
bool is_whole(const fs::path& library) {
  const auto sum = base::read_file(library.string() + ".sum", 1 << 12);
  if (!sum.ok()) return false;
  const auto bytes = base::read_file(library, uint64_t{1} << 28);
  return bytes.ok() && base::digest_text(*bytes).hex() == *sum;
}

void keep_within_limit(const fs::path& folder) {
  struct Entry { fs::path path; uint64_t bytes; int64_t used; };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    struct stat info;
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    entries.push_back({it->path(), static_cast<uint64_t>(info.st_size), static_cast<int64_t>(info.st_mtime)});
    total += entries.back().bytes;
  }
  if (total <= kMostCached) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& e : entries) {
    if (total <= kMostCached / 2) break;
    if (fs::remove(e.path, code)) total -= e.bytes;
  }
}

/// As many compilers at once as there are cores: a program of many small graphs starts one for each, and each takes 100 MB.
class TurnToCompile {
 public:
  TurnToCompile() { turns().acquire(); }
  ~TurnToCompile() { turns().release(); }
  TurnToCompile(const TurnToCompile&) = delete;
  TurnToCompile& operator=(const TurnToCompile&) = delete;

 private:
  static std::counting_semaphore<>& turns() {
    // Leaked: threads may still compile while the process ends. A forked child has its own: its parent's turns never come back there.
    static std::mutex mutex;
    static std::counting_semaphore<>* all = nullptr;
    static pid_t owner = 0;
    const std::lock_guard lock(mutex);
    if (owner != ::getpid()) {
      all = new std::counting_semaphore<>(std::max(1u, std::thread::hardware_concurrency()));
      owner = ::getpid();
    }
    return *all;
  }
};

Status compile(const Toolchain& t, const std::vector<std::string>& flags, const fs::path& source, const fs::path& library) {
  base::Command c;
  c.argv = {t.compiler};
  c.argv.insert(c.argv.end(), flags.begin(), flags.end());
  c.argv.insert(c.argv.end(), {"-x", "c++", source.string(), "-o", library.string()});
  c.removed_environment = {"LD_PRELOAD"};
  base::RunLimits limits;
  limits.time = compile_limit();
  limits.output_bytes = 1 << 16;
  const TurnToCompile turn;
  CUTAWAY_TRY_ASSIGN(const base::Output out, base::run_command(c, {}, limits));
  if (out.exit.ok()) return {};
  return Error{.what = t.compiler + " failed: " + out.exit.text(compile_limit()), .place = source.string(), .because = first_error(out.err), .hint = "the graph runs as torch's own operators; report this with that file"};
}

Result<void*> open_library(const fs::path& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return Error{.what = "compiled code cannot be opened", .place = path.string(), .because = ::dlerror()};
  return handle;
}

}  // namespace

int processor_lanes() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return 16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 8;
#endif
  return 4;
}

const Result<Toolchain>& toolchain() {
  static const Result<Toolchain> found = find_toolchain();
  return found;
}

fs::path cache_directory() {
  if (const char* given = std::getenv("CUTAWAY_CACHE_DIR"); given && *given) return given;
  if (const char* user = std::getenv("XDG_CACHE_HOME"); user && *user) return fs::path(user) / "cutaway";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "cutaway";
  return fs::temp_directory_path() / "cutaway-cache";
}

std::vector<std::string> flags_for(int lanes) {
  // No contraction: a product is rounded before it is added, as the operators do it. Strict arithmetic otherwise.
  std::vector<std::string> flags = {"-std=c++17", "-O2", "-ftree-vectorize", "-fPIC", "-shared", "-w", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-plt"};
  if (lanes == 16) flags.insert(flags.end(), {"-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"});
  else if (lanes == 8) flags.insert(flags.end(), {"-mavx2", "-mfma"});
  return flags;
}

std::optional<std::string> read_cached(const std::string& name) {
  const fs::path path = cache_directory() / "native" / name;
  const auto sum = base::read_file(path.string() + ".sum", 1 << 12);
  if (!sum.ok()) return std::nullopt;
  auto bytes = base::read_file(path, uint64_t{1} << 28);
  if (!bytes.ok() || base::digest_text(*bytes).hex() != *sum) return std::nullopt;
  ::utime(path.c_str(), nullptr);   // used now: it goes last when space is short
  return std::move(*bytes);
}

bool keep_cached(const std::string& key, const std::string& source_suffix, const std::string& source, const std::string& suffix, const std::string& bytes) {
  const fs::path folder = cache_directory() / "native", wanted = folder / (key + suffix);
  if (!base::make_directories(folder, base::Sync::fast).ok()) return false;
  // The sum last: a file without one is not taken. All are moved into place whole.
  const bool kept = base::write_file_atomic(folder / (key + source_suffix), source, base::Sync::fast).ok() && base::write_file_atomic(wanted, bytes, base::Sync::fast).ok() &&
                    base::write_file_atomic(wanted.string() + ".sum", base::digest_text(bytes).hex(), base::Sync::fast).ok();
  keep_within_limit(folder);
  return kept;
}

Result<std::shared_ptr<Library>> Library::load(const std::string& source, int lanes, debug::Sink* sink, const std::vector<std::string>& more) {
  const Result<Toolchain>& t = toolchain();
  if (!t.ok()) return t.error();
  base::Hasher hasher;
  hasher.add(source).add(t->compiler).add(t->version);
  std::vector<std::string> flags = flags_for(lanes);
  flags.insert(flags.end(), more.begin(), more.end());
  for (const std::string& f : flags) hasher.add(f).add("\n");
  const std::string key = hasher.finish().hex();
  const fs::path folder = cache_directory() / "native", wanted = folder / (key + ".so");
  if (is_whole(wanted)) {
    auto handle = open_library(wanted);
    if (handle.ok()) {
      ::utime(wanted.c_str(), nullptr);   // used now: it goes last when space is short
      debug::count(sink, "native", "cache_hits", 1);
      return std::shared_ptr<Library>(new Library(*handle, true));
    }
  }
  debug::Phase phase(sink, "native", "compile");
  phase.note("bytes", static_cast<int64_t>(source.size()));
  // A folder that cannot be written to (full, read-only) costs the cache, not the kernels.
  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-native"));
  const fs::path text = scratch.path() / "kernels.cpp", made = scratch.path() / "kernels.so";
  CUTAWAY_TRY(base::write_file_atomic(text, source, base::Sync::fast));
  if (Status status = compile(*t, flags, text, made); !status.ok()) {
    phase.fail(status.error().what);
    return std::move(status).error();
  }
  fs::path from = made;
  if (const auto bytes = base::read_file(made, uint64_t{1} << 28); bytes.ok()) {
    if (keep_cached(key, ".cpp", source, ".so", *bytes)) from = wanted;
    else debug::say(sink, "native", debug::Level::warning, "the cache of compiled code cannot be written: " + folder.string());
  }
  CUTAWAY_TRY_ASSIGN(void* handle, open_library(from));
  return std::shared_ptr<Library>(new Library(handle, false));
}

Library::~Library() { ::dlclose(handle_); }
void* Library::find(const std::string& function) const { return ::dlsym(handle_, function.c_str()); }

}  // namespace cutaway::native
