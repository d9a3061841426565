#include "diagnosis/worker/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/base/json.h"
#include "core/base/text.h"
#include "diagnosis/worker/message.h"

namespace cutaway::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLoadsWithin{180};   // Python and torch, on a machine that is busy
constexpr size_t kMostDescriptors = 8;

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }
template <size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) { return std::find(names.begin(), names.end(), name) != names.end(); }
/// What nobody reads before the forked process runs, or what it sets again by itself in any case.
constexpr std::array<std::string_view, 5> kMayDiffer = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR", "PYTHONUNBUFFERED", "CUTAWAY_WORKER_FD"};
/// What it sets again (python/cutaway/_launch.py) where torch has not found it in the environment, which would take precedence.
constexpr std::array<std::string_view, 3> kMayBeNew = {"TORCHINDUCTOR_COMPILE_THREADS", "TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE"};

base::Status send_descriptors(int socket, const std::vector<std::pair<int, int>>& descriptors) {
  char byte = 'f';
  iovec part{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::vector<int> here;
    for (const auto& [fd, there] : descriptors) here.push_back(fd);
    std::memcpy(CMSG_DATA(head), here.data(), sizeof(int) * here.size());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) == 1) return {};
    if (errno != EINTR) return base::Error{"cannot write to the launcher", "", std::strerror(errno), "", ""};
  }
}

}  // namespace

Launcher::Launcher(std::string python, std::vector<std::pair<std::string, std::string>> environment) : python_(std::move(python)), added_(std::move(environment)) {}

Launcher::~Launcher() {
  socket_.close();
  if (process_) ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

base::Status Launcher::open() {
  if (process_) return {};
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) return base::os_error("launcher", "cannot make a socket", errno);
  base::FileDescriptor own(sockets[0]), other(sockets[1]), nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  // It forks twice, so that what it starts is an orphan, and ours: waited for and ended as if it had been started here.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return base::os_error("launcher", "cannot take over processes", errno);
  constexpr int kChildFd = 3;
  base::Command command;
  command.argv = {python_, "-m", "cutaway._launch"};
  command.environment = added_;
  command.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"};
  environment_ = base::environment_of(command);
  std::sort(environment_.begin(), environment_.end());
  command.environment.emplace_back("CUTAWAY_LAUNCH_FD", std::to_string(kChildFd));
  CUTAWAY_TRY_ASSIGN(base::Process process, base::start_command(command, {{nowhere.get(), 1}, {nowhere.get(), 2}, {other.get(), kChildFd}}));
  process_.emplace(std::move(process));
  socket_ = std::move(own);
  return {};
}

bool Launcher::can_fork(const base::Command& command, const std::vector<std::string>& environment) const {
  const std::vector<std::string>& argv = command.argv;
  if (argv.size() < 3 || argv[0] != python_ || argv[1] != "-m" || (argv[2] != "cutaway.observe" && argv[2] != "cutaway.worker")) return false;
  std::vector<std::string> wanted = environment, different;
  std::sort(wanted.begin(), wanted.end());
  std::set_symmetric_difference(wanted.begin(), wanted.end(), environment_.begin(), environment_.end(), std::back_inserter(different));
  return std::all_of(different.begin(), different.end(), [&](const std::string& entry) {
    const std::string_view name = name_of(entry);
    const auto has_name = [&](const std::string& e) { return name_of(e) == name; };
    return is_one_of(name, kMayDiffer) || (is_one_of(name, kMayBeNew) && std::none_of(environment_.begin(), environment_.end(), has_name));
  });
}

base::Result<std::optional<pid_t>> Launcher::ask(const std::string& request, const std::vector<std::pair<int, int>>& descriptors) {
  CUTAWAY_TRY(send_descriptors(socket_.get(), descriptors));
  CUTAWAY_TRY(send_message(socket_.get(), request));
  const auto begin = Clock::now();
  for (;;) {
    if (is_interrupted_ && is_interrupted_()) return base::Error{"interrupted", "", "", "", ""};
    pollfd answer{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&answer, 1, 100);
    if (ready < 0 && errno != EINTR) return base::os_error("launcher", "cannot be waited for", errno);
    if (ready > 0) break;
    if (Clock::now() - begin > kLoadsWithin) return std::optional<pid_t>();
  }
  CUTAWAY_TRY_ASSIGN(const std::optional<std::string> text, receive_message(socket_.get()));
  if (!text) return std::optional<pid_t>();
  const auto pid = static_cast<pid_t>(base::Json::parse_or_null(*text).integer_or("pid", -1));
  return pid > 0 ? std::optional<pid_t>(pid) : std::nullopt;
}

base::Result<base::Process> Launcher::start(const base::Command& command, const std::vector<std::pair<int, int>>& descriptors) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> environment = base::environment_of(command);
  if (!is_broken_ && !open().ok()) is_broken_ = true;
  if (is_broken_ || descriptors.size() > kMostDescriptors || !can_fork(command, environment)) return base::start_command(command, descriptors);
  std::error_code ec;
  const std::string directory = command.directory.empty() ? std::filesystem::current_path(ec).string() : command.directory.string();
  const auto is_text = [](const std::string& word) { return base::is_utf8(word); };
  if (!std::ranges::all_of(command.argv, is_text) || !std::ranges::all_of(environment, is_text) || !is_text(directory)) return base::start_command(command, descriptors);
  base::Json::Object variables;
  base::Json::Array words(command.argv.begin() + 2, command.argv.end()), there;
  for (const std::string& entry : environment) variables.insert_or_assign(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
  for (const auto& [fd, target] : descriptors) there.push_back(target);
  const base::Json request(base::Json::Object{{"words", std::move(words)}, {"directory", directory}, {"environment", std::move(variables)}, {"descriptors", std::move(there)}});
  auto pid = ask(request.text(), descriptors);
  if (!pid.ok() && is_interrupted_ && is_interrupted_()) return std::move(pid).error();
  if (pid.ok() && *pid) return base::Process::adopt(**pid);
  is_broken_ = true;   // a start of its own tells why Python or torch do not come up
  return base::start_command(command, descriptors);
}

}  // namespace cutaway::worker
