// This file is tested by unix_connection_test.cpp.

#include "proto/transport/byte_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <sys/socket.h>
#include <sys/uio.h>

namespace score::proto {

namespace {

IoStep failed_step(IoStep::Kind would_block) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {would_block, 0, {}};
  return {IoStep::Kind::Failed, 0, {errno, std::generic_category()}};
}

}  // namespace

IoStep ByteStream::write_with(std::string_view, std::span<const base::UniqueFd>) {
  return {IoStep::Kind::Failed, 0, std::make_error_code(std::errc::operation_not_supported)};
}

std::vector<base::UniqueFd> ByteStream::take_descriptors(std::size_t) {
  return {};
}

IoStep PlainStream::read_with_descriptors(std::span<char> into) {
  const auto got = base::receive_some(fd_, into, waiting_);
  if (got && waiting_.size() > most_waiting_) {
    return {IoStep::Kind::Failed, 0, std::make_error_code(std::errc::too_many_files_open)};
  }
  if (got && *got == 0) return {IoStep::Kind::End, 0, {}};
  if (got) return {IoStep::Kind::Done, *got, {}};
  const bool would_block = got.error().is(std::errc::resource_unavailable_try_again);
  return {would_block ? IoStep::Kind::WaitRead : IoStep::Kind::Failed, 0, got.error().code()};
}

std::vector<base::UniqueFd> PlainStream::take_descriptors(std::size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(count, waiting_.size()));
  std::vector<base::UniqueFd> taken(std::make_move_iterator(waiting_.begin()),
                                    std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

IoStep PlainStream::write_with(std::string_view bytes, std::span<const base::UniqueFd> fds) {
  const auto put = base::send_some(fd_, bytes, fds);
  if (put) return {IoStep::Kind::Done, *put, {}};
  const bool would_block = put.error().is(std::errc::resource_unavailable_try_again);
  return {would_block ? IoStep::Kind::WaitWrite : IoStep::Kind::Failed, 0, put.error().code()};
}

IoStep PlainStream::read_some(std::span<char> into) {
  if (most_waiting_ > 0) return read_with_descriptors(into);
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
