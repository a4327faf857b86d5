// Moves all bytes of a transfer over a blocking socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/uio.h>

namespace score::pario {

// A server that sends nothing for this time while it has requests is considered dead.
inline constexpr int kSilenceMs = 30'000;

// The time is that of CLOCK_MONOTONIC.
std::int64_t monotonic_ms();

// Both transfer all bytes of all pieces. They return false if the connection is broken, or silent
// for the socket's timeout.
bool send_all(int fd, std::span<iovec> pieces);
bool receive_all(int fd, std::span<iovec> pieces);
bool receive_all(int fd, char* bytes, std::size_t length);

// Receives several short replies with one system call.
class InputAhead {
 public:
  bool is_empty() const { return begin_ == end_; }

  // Takes all of `bytes`, and receives more if needed. Returns false as above.
  bool take(int fd, std::span<char> bytes);
  // Takes the next bytes that have already arrived. Returns how many.
  std::size_t take_ahead(std::span<char> bytes);

 private:
  std::array<char, 1'024> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Connects within `timeout_ms`. Returns an errno value, or 0 and `fd`.
int connect_to(const std::string& host, const std::string& port, int timeout_ms, int& fd);

}  // namespace score::pario
