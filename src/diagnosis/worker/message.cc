#include "diagnosis/worker/message.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace cutaway::worker {
namespace {

constexpr uint64_t kMaxMessage = uint64_t{1} << 30;

base::Status write_whole(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    ssize_t n = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK) n = ::write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::Error{"cannot write to the worker", "", std::strerror(errno), "", ""};
    data += n;
    bytes -= static_cast<size_t>(n);
  }
  return {};
}

// How many bytes arrived before the end: `bytes` unless the other side closed.
base::Result<size_t> read_whole(int fd, char* data, size_t bytes) {
  size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::read(fd, data + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ECONNRESET) break;
    if (n < 0) return base::Error{"cannot read from the worker", "", std::strerror(errno), "", ""};
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

}  // namespace

base::Status send_message(int fd, std::string_view text) {
  unsigned char head[8];
  for (int i = 0; i < 8; ++i) head[i] = static_cast<unsigned char>(static_cast<uint64_t>(text.size()) >> (8 * i));
  CUTAWAY_TRY(write_whole(fd, reinterpret_cast<const char*>(head), sizeof head));
  return write_whole(fd, text.data(), text.size());
}

base::Result<std::optional<std::string>> receive_message(int fd) {
  unsigned char head[8];
  CUTAWAY_TRY_ASSIGN(size_t got, read_whole(fd, reinterpret_cast<char*>(head), sizeof head));
  if (got == 0) return std::optional<std::string>();
  uint64_t size = 0;
  for (int i = 0; i < 8; ++i) size |= static_cast<uint64_t>(head[i]) << (8 * i);
  if (got < sizeof head || size > kMaxMessage) return base::Error{"the worker sent something that is no message", "", "", "", ""};
  std::string text(size, '\0');
  CUTAWAY_TRY_ASSIGN(got, read_whole(fd, text.data(), size));
  if (got < size) return base::Error{"the worker stopped in the middle of a message", "", "", "", ""};
  return std::optional<std::string>(std::move(text));
}

}  // namespace cutaway::worker
