#pragma once
// Provides descriptors with one owner, and the few system calls on them that several parts share.
// All descriptors made here are close-on-exec; a child gets descriptors only explicitly
// (base/os/spawn.hpp). It is free of Asio.

#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::inline base {

// A UniqueFd owns a descriptor and closes it. It is empty (-1) when default-constructed, moved from
// or released.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

  // Returns the descriptor and gives up its ownership without closing it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

struct SocketPair {
  UniqueFd first;
  UniqueFd second;
};

// Errors of all of these functions: errno codes with the call's name (and path) as context.
[[nodiscard]] Result<Pipe> make_pipe();
// Makes a pair of Unix domain sockets. `kind` is SOCK_STREAM, or SOCK_SEQPACKET, which keeps
// records separate.
[[nodiscard]] Result<SocketPair> make_socket_pair(int kind);
[[nodiscard]] Result<UniqueFd> duplicate(int fd);
[[nodiscard]] Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);
[[nodiscard]] Status set_nonblocking(int fd, bool on);

// Returns the whole content, or TooLarge if it has more than max_bytes. This works for /proc and
// cgroup files, whose size is not known in advance. read_all starts at the descriptor's position.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t max_bytes);
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t max_bytes);
// Writes all bytes. It blocks on blocking descriptors and retries after signals.
[[nodiscard]] Status write_all(int fd, std::string_view bytes);
// Replaces or creates the file in one step (a temporary file in the same directory, fsync, rename).
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes, mode_t mode);

// PeerCredentials identify the process at the other end of a connected Unix socket, as the kernel
// reports it (SO_PEERCRED).
struct PeerCredentials {
  pid_t pid = 0;
  UserId uid;
  GroupId gid;
};

[[nodiscard]] Result<PeerCredentials> peer_credentials(int socket);

inline constexpr std::size_t kMaxPassedFds = 32;

// Sends one message with descriptors over a Unix socket (SCM_RIGHTS). The sender keeps its
// descriptors. `bytes` must not be empty; on a SOCK_SEQPACKET socket they stay one message. Errors:
// TooLarge for more than kMaxPassedFds, errno codes (EAGAIN if the socket is non-blocking and
// full).
[[nodiscard]] Status send_with_fds(int socket, std::span<const std::byte> bytes,
                                   std::span<const int> fds);

struct ReceivedPacket {
  std::vector<std::byte> bytes;  // empty: the other side closed
  std::vector<UniqueFd> fds;     // close-on-exec
};

// Receives the next message of a SOCK_SEQPACKET socket, or the bytes of one read of a stream.
// Errors: TooLarge if it was longer than max_bytes or had more than kMaxPassedFds (all descriptors
// are then closed), errno codes (EAGAIN).
[[nodiscard]] Result<ReceivedPacket> receive_with_fds(int socket, std::size_t max_bytes);

// Each makes one system call on a socket without blocking. They are for streams, where only a part
// may be transferred. Descriptors travel with the first of the bytes that they were sent with. A
// result of 0 means that the other side has closed. Errors: errno codes (EAGAIN); receive_some also
// fails with TooLarge for more than kMaxPassedFds (all are then closed).
[[nodiscard]] Result<std::size_t> send_some(int socket, std::string_view bytes,
                                            std::span<const UniqueFd> fds);
[[nodiscard]] Result<std::size_t> receive_some(int socket, std::span<char> into,
                                               std::vector<UniqueFd>& fds);

}  // namespace score::inline base
