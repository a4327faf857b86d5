#include "base/os/fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::inline base {

namespace {

// Copies the descriptors of a control message out, because the buffer is not aligned for them.
std::vector<UniqueFd> take_fds(const msghdr& message) {
  std::vector<UniqueFd> fds;
  for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

Status write_temporary(const std::string& path, std::string_view bytes, mode_t mode) {
  auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
  if (!file) return file.error();
  if (fchmod(file->get(), mode) != 0)
    return fail(errno_code(errno), "cannot set the mode of {}", path);
  if (auto written = write_all(file->get(), bytes); !written) {
    return written.error().with_context("{}", path);
  }
  if (fsync(file->get()) != 0) return fail(errno_code(errno), "cannot flush {} to disk", path);
  return {};
}

// Flushes the directory to disk, because the rename itself must reach the disk too.
Status sync_directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto directory = slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  auto opened = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!opened) return opened.error();
  if (fsync(opened->get()) != 0)
    return fail(errno_code(errno), "cannot flush {} to disk", directory);
  return {};
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void UniqueFd::reset() {
  // close() is not repeated after EINTR, because Linux has closed the descriptor by then.
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return fail(errno_code(errno), "cannot make a pipe");
  return Pipe{.read = UniqueFd(fds[0]), .write = UniqueFd(fds[1])};
}

Result<SocketPair> make_socket_pair(int kind) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return fail(errno_code(errno), "cannot make a socket pair");
  }
  return SocketPair{.first = UniqueFd(fds[0]), .second = UniqueFd(fds[1])};
}

Result<UniqueFd> duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail(errno_code(errno), "cannot duplicate descriptor {}", fd);
  return copy;
}

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail(errno_code(errno), "cannot open {}", path);
  return UniqueFd(fd);
}

Status set_nonblocking(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  const int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (flags < 0 || fcntl(fd, F_SETFL, wanted) != 0) {
    return fail(errno_code(errno), "cannot change the blocking mode of descriptor {}", fd);
  }
  return {};
}

Result<std::string> read_all(int fd, std::size_t max_bytes) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno_code(errno), "cannot read");
    if (got == 0) return text;
    if (text.size() + static_cast<std::size_t>(got) > max_bytes) {
      return fail(Errc::TooLarge, "cannot read more than {} bytes", max_bytes);
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  auto file = open_file(path, O_RDONLY);
  if (!file) return file.error();
  auto text = read_all(file->get(), max_bytes);
  if (!text) return text.error().with_context("{}", path);
  return text;
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(errno_code(errno), "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Status replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string temporary = path + ".new";
  auto written = write_temporary(temporary, bytes, mode);
  if (written && rename(temporary.c_str(), path.c_str()) != 0) {
    written = fail(errno_code(errno), "cannot rename {} to {}", temporary, path);
  }
  if (!written) {
    unlink(temporary.c_str());
    return written;
  }
  return sync_directory_of(path);
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(errno_code(errno), "cannot get the peer's credentials");
  }
  // If there is no peer, the kernel returns pid 0 and uid -1 instead of an error. A peer outside of
  // this process's pid namespace has only pid 0.
  const bool is_there = credentials.pid != 0 || credentials.uid != static_cast<uid_t>(-1);
  if (!is_there) return fail(Errc::Denied, "the peer has no process");
  return PeerCredentials{
      .pid = credentials.pid, .uid = UserId(credentials.uid), .gid = GroupId(credentials.gid)};
}

Status send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxPassedFds)
    return fail(Errc::TooLarge, "cannot send {} descriptors", fds.size());
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control{};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail(errno_code(errno), "cannot send a message");
  // A stream may accept only a part. The descriptors went with that part, so the rest follows as
  // plain bytes.
  auto rest = bytes.subspan(static_cast<std::size_t>(sent));
  return rest.empty() ? Status() : send_with_fds(socket, rest, {});
}

Result<std::size_t> send_some(int socket, std::string_view bytes, std::span<const UniqueFd> fds) {
  if (fds.size() > kMaxPassedFds)
    return fail(Errc::TooLarge, "cannot send {} descriptors", fds.size());
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control{};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail(errno_code(errno), "cannot send");
  return static_cast<std::size_t>(sent);
}

Result<std::size_t> receive_some(int socket, std::span<char> into, std::vector<UniqueFd>& fds) {
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail(errno_code(errno), "cannot receive");
  auto taken = take_fds(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return fail(Errc::TooLarge, "cannot receive descriptors");
  std::move(taken.begin(), taken.end(), std::back_inserter(fds));
  return static_cast<std::size_t>(got);
}

Result<ReceivedPacket> receive_with_fds(int socket, std::size_t max_bytes) {
  ReceivedPacket received;
  received.bytes.resize(max_bytes);
  iovec part{.iov_base = received.bytes.data(), .iov_len = max_bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail(errno_code(errno), "cannot receive a message");
  received.fds = take_fds(message);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return fail(Errc::TooLarge, "cannot receive a message");
  }
  received.bytes.resize(static_cast<std::size_t>(got));
  return received;
}

}  // namespace score::inline base
