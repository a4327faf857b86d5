#include "bench/npb/udp_communicator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <system_error>

namespace score::npb {

namespace {

constexpr int kSocketBytes = 4 << 20;
constexpr int kTimeoutMs = 10'000;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

UdpCommunicator::UdpCommunicator(Rank rank, Rank size, int first)
    : rank_(rank), socket_(first + static_cast<int>(rank)), sources_(size) {
  for (Rank i = 0; i < size; ++i) {
    sockaddr_in& address = sources_[i].address;
    socklen_t length = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    if (getsockname(first + static_cast<int>(i), name, &length) != 0)
      fail("cannot get the address of a socket");
  }
  // This option may exceed net.core.rmem_max; it needs a privilege.
  if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBytes, sizeof kSocketBytes) != 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  }
}

void UdpCommunicator::transfer(std::span<const Outgoing> out, std::span<const Incoming> in) {
  for (const Incoming& part : in) {
    if (part.from == rank_ || part.bytes.empty()) continue;
    Source& source = sources_[part.from];
    source.wanted = part.bytes;
    missing_bytes_ += part.bytes.size();
    while (!source.early.empty() && !source.wanted.empty()) {
      const auto bytes = std::move(source.early.front());
      source.early.pop_front();
      accept(source, bytes);
    }
  }
  for (const Outgoing& part : out) {
    if (part.to != rank_) send(part);
  }
  while (missing_bytes_ > 0) {
    receive_some();
    if (missing_bytes_ > 0) wait();
  }
}

void UdpCommunicator::send(const Outgoing& part) {
  const auto* to = reinterpret_cast<const sockaddr*>(&sources_[part.to].address);
  std::memcpy(out_.data(), &rank_, sizeof rank_);
  for (auto rest = part.bytes; !rest.empty();) {
    const auto piece = rest.first(std::min(rest.size(), kDatagram));
    std::memcpy(out_.data() + sizeof rank_, piece.data(), piece.size());
    const std::size_t bytes = sizeof rank_ + piece.size();
    if (sendto(socket_, out_.data(), bytes, 0, to, sizeof(sockaddr_in)) < 0) fail("cannot send");
    rest = rest.subspan(piece.size());
  }
}

void UdpCommunicator::wait() {
  pollfd news{socket_, POLLIN, 0};
  const timespec timeout{kTimeoutMs / 1000, 0};
  const int count = ppoll(&news, 1, &timeout, nullptr);
  if (count == 0) throw std::runtime_error("a datagram was lost");
  if (count < 0 && errno != EINTR) fail("cannot poll");
}

void UdpCommunicator::receive_some() {
  for (;;) {
    const ssize_t got = recv(socket_, in_.data(), in_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) fail("cannot receive");
    Rank from = size();
    const auto datagram = std::span(in_).first(static_cast<std::size_t>(got));
    if (datagram.size() > sizeof from) std::memcpy(&from, datagram.data(), sizeof from);
    if (from >= size()) throw std::runtime_error("a datagram from an unknown sender");
    take(sources_[from], datagram.subspan(sizeof from));
  }
}

void UdpCommunicator::take(Source& source, std::span<const std::byte> bytes) {
  if (source.early.empty() && !source.wanted.empty()) return accept(source, bytes);
  source.early.emplace_back(bytes.begin(), bytes.end());
}

void UdpCommunicator::accept(Source& source, std::span<const std::byte> bytes) {
  if (bytes.size() > source.wanted.size())
    throw std::runtime_error("a message is longer than expected");
  std::memcpy(source.wanted.data(), bytes.data(), bytes.size());
  source.wanted = source.wanted.subspan(bytes.size());
  missing_bytes_ -= bytes.size();
  if (source.wanted.empty()) count_part();
}

}  // namespace score::npb
