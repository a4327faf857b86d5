// (tested by unix_connection_test.cpp)

#include "proto/byte_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

namespace score::proto {

namespace {

IoStep failed_step(IoStep::Kind would_block) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {would_block, 0, {}};
  return {IoStep::Kind::Failed, 0, {errno, std::generic_category()}};
}

}  // namespace

IoStep PlainStream::read_some(std::span<char> into) {
  ssize_t n = 0;
  do {
    n = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return failed_step(IoStep::Kind::WaitRead);
  if (n == 0) return {IoStep::Kind::End, 0, {}};
  return {IoStep::Kind::Done, static_cast<std::size_t>(n), {}};
}

IoStep PlainStream::write_some(std::span<const std::string_view> parts) {
  std::array<iovec, 16> vectors{};
  std::size_t count = std::min(parts.size(), vectors.size());
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i].iov_base = const_cast<char*>(parts[i].data());  // sendmsg only reads
    vectors[i].iov_len = parts[i].size();
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  ssize_t n = 0;
  do {
    n = ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return failed_step(IoStep::Kind::WaitWrite);
  return {IoStep::Kind::Done, static_cast<std::size_t>(n), {}};
}

}  // namespace score::proto
