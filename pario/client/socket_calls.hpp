// Whole transfers on a blocking socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/uio.h>

namespace score::pario {

// A server that says nothing for so long while it has requests is taken for dead.
inline constexpr int kSilenceMs = 30'000;

// CLOCK_MONOTONIC.
std::int64_t monotonic_ms();

// All bytes of all pieces. False: the connection is broken, or silent for the socket's time.
bool send_all(int fd, std::span<iovec> pieces);
bool receive_all(int fd, std::span<iovec> pieces);
bool receive_all(int fd, char* bytes, std::size_t length);

// Takes short replies several at a time.
class InputAhead {
 public:
  bool is_empty() const { return begin_ == end_; }

  // All of `bytes`; receives more if needed. False: as above.
  bool take(int fd, std::span<char> bytes);
  // What is there of the next bytes; gives how many.
  std::size_t take_ahead(std::span<char> bytes);

 private:
  std::array<char, 1'024> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Connects within `timeout_ms`. An errno value, or 0 and `fd`.
int connect_to(const std::string& host, const std::string& port, int timeout_ms, int& fd);

}  // namespace score::pario
