// Whole transfers on a blocking socket.
#pragma once

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

// Connects within `timeout_ms`. An errno value, or 0 and `fd`.
int connect_to(const std::string& host, const std::string& port, int timeout_ms, int& fd);

}  // namespace score::pario
