#include "pario/client/socket_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kMostPieces = 1'024;  // IOV_MAX of Linux
constexpr int kHostSilenceMs = 5'000;
constexpr timeval kSilence{kSilenceMs / 1'000, 0};

// Skips the first `done` bytes.
std::span<iovec> skip_bytes(std::span<iovec> pieces, std::size_t done) {
  while (!pieces.empty() && done >= pieces.front().iov_len) {
    done -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (!pieces.empty() && done > 0) {
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + done;
    pieces.front().iov_len -= done;
  }
  return pieces;
}

template <typename Transfer>
bool transfer_all(std::span<iovec> pieces, Transfer transfer) {
  pieces = skip_bytes(pieces, 0);
  while (!pieces.empty()) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = std::min(pieces.size(), kMostPieces);
    const ssize_t done = transfer(message);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    pieces = skip_bytes(pieces, static_cast<std::size_t>(done));
  }
  return true;
}

// While no process listens, the kernel may connect a socket to itself if the server's port is one
// of those that it assigns to clients. The server could then not use its port again.
bool is_own_peer(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof own;
  socklen_t peer_length = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

int connect_one(const addrinfo& address, int timeout_ms, int& made) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int error = ::connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd news{fd, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (::poll(&news, 1, timeout_ms) == 1) {
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    } else {
      error = ETIMEDOUT;
    }
  }
  if (error == 0 && is_own_peer(fd)) error = ECONNREFUSED;
  if (error != 0) {
    ::close(fd);
    return error;
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // The kernel of a host that is alive acknowledges what is sent. A server that reads nothing for
  // so long loses the connection, too; the requests are then sent again over a new one.
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kHostSilenceMs, sizeof kHostSilenceMs);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kSilence, sizeof kSilence);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSilence, sizeof kSilence);
  made = fd;
  return 0;
}

}  // namespace

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

bool send_all(int fd, std::span<iovec> pieces) {
  return transfer_all(pieces, [fd](const msghdr& m) { return ::sendmsg(fd, &m, MSG_NOSIGNAL); });
}

bool receive_all(int fd, std::span<iovec> pieces) {
  return transfer_all(pieces, [fd](msghdr& m) { return ::recvmsg(fd, &m, MSG_WAITALL); });
}

bool receive_all(int fd, char* bytes, std::size_t length) {
  iovec piece{bytes, length};
  return receive_all(fd, std::span(&piece, 1));
}

bool InputAhead::take(int fd, std::span<char> bytes) {
  for (;;) {
    bytes = bytes.subspan(take_ahead(bytes));
    if (bytes.empty()) return true;
    const ssize_t received = ::recv(fd, bytes_.data(), bytes_.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    begin_ = 0;
    end_ = static_cast<std::size_t>(received);
  }
}

std::size_t InputAhead::take_ahead(std::span<char> bytes) {
  const std::size_t taken = std::min(bytes.size(), end_ - begin_);
  std::copy_n(bytes_.data() + begin_, taken, bytes.data());
  begin_ += taken;
  return taken;
}

int connect_to(const std::string& host, const std::string& port, int timeout_ms, int& fd) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (result != 0) return result == EAI_SYSTEM ? errno : EHOSTUNREACH;
  int error = EHOSTUNREACH;
  for (const addrinfo* one = found; one != nullptr && error != 0; one = one->ai_next) {
    error = connect_one(*one, timeout_ms, fd);
  }
  ::freeaddrinfo(found);
  return error;
}

}  // namespace score::pario
