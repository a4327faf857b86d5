#pragma once
// Descriptors with one owner, and the few system calls on them that several parts share. Everything
// made here is close-on-exec; a child gets descriptors by name only (base/os/spawn.hpp). Asio-free.

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

// Owns a descriptor and closes it. Empty (-1) when default-made, moved from or released.
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

  // Gives the descriptor up without closing it.
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

// Errors of all of these: errno codes with the call's name (and path) as context.
[[nodiscard]] Result<Pipe> make_pipe();
// kind: SOCK_STREAM or SOCK_SEQPACKET (records kept apart), Unix domain.
[[nodiscard]] Result<SocketPair> make_socket_pair(int kind);
[[nodiscard]] Result<UniqueFd> duplicate(int fd);
[[nodiscard]] Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);
[[nodiscard]] Status set_nonblocking(int fd, bool on);

// The whole file, or TooLarge if it has more than max_bytes. Works for /proc and cgroup files,
// whose size is not known before. read_all starts at the descriptor's position.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t max_bytes);
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t max_bytes);
// All bytes; blocks on blocking descriptors, retries after signals.
[[nodiscard]] Status write_all(int fd, std::string_view bytes);
// Replaces or makes the file as one step (temporary file beside it, fsync, rename).
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes, mode_t mode);

// Who is at the other end of a connected Unix socket, as the kernel says (SO_PEERCRED).
struct PeerCredentials {
  pid_t pid = 0;
  UserId uid;
  GroupId gid;
};

[[nodiscard]] Result<PeerCredentials> peer_credentials(int socket);

inline constexpr std::size_t kMaxPassedFds = 32;

// One message with descriptors over a Unix socket (SCM_RIGHTS). The sender keeps its descriptors.
// bytes: 1 or more; for SOCK_SEQPACKET the message stays one. Errors: TooLarge for more than
// kMaxPassedFds, errno codes (EAGAIN if the socket is non-blocking and full).
[[nodiscard]] Status send_with_fds(int socket, std::span<const std::byte> bytes,
                                   std::span<const int> fds);

struct ReceivedMessage {
  std::vector<std::byte> bytes;  // empty: the other side closed
  std::vector<UniqueFd> fds;     // close-on-exec
};

// The next message of a SOCK_SEQPACKET socket (or what one read gives of a stream). Errors:
// TooLarge if it was longer than max_bytes or had more than kMaxPassedFds (all descriptors are
// closed then), errno codes (EAGAIN).
[[nodiscard]] Result<ReceivedMessage> receive_with_fds(int socket, std::size_t max_bytes);

// One system call on a socket that does not block; for streams, where a part may be moved.
// Descriptors go, and come, with the first of the bytes they were sent with. Errors: errno codes
// (EAGAIN); receive_some also TooLarge for more than kMaxPassedFds (all are closed then). 0: the
// other side closed.
[[nodiscard]] Result<std::size_t> send_some(int socket, std::string_view bytes,
                                            std::span<const UniqueFd> fds);
[[nodiscard]] Result<std::size_t> receive_some(int socket, std::span<char> into,
                                               std::vector<UniqueFd>& fds);

}  // namespace score::inline base
