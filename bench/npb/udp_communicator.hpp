// Implements Communicator over bare datagrams, to measure the cost of the kernels with only the
// machine's own network. There are no retransmissions, so it serves only where nothing is lost:
// between processes of one machine with enough room in their sockets. If a datagram does not arrive
// within ten seconds, this is an exception.
#pragma once

#include "bench/npb/communicator.hpp"

#include <array>
#include <deque>
#include <netinet/in.h>
#include <vector>

namespace score::npb {

class UdpCommunicator final : public Communicator {
 public:
  // Takes bound sockets of all ranks, with descriptors `first` ... `first` + `size` - 1. They are
  // not closed.
  UdpCommunicator(Rank rank, Rank size, int first);

  [[nodiscard]] Rank rank() const override { return rank_; }

  [[nodiscard]] Rank size() const override { return static_cast<Rank>(sources_.size()); }

  void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) override;

 private:
  static constexpr std::size_t kDatagram = 1400;  // payload, behind the sender's rank

  struct Source {
    sockaddr_in address{};
    std::span<std::byte> wanted;  // the missing part
    std::deque<std::vector<std::byte>> early;
  };

  void send(const Outgoing& part);
  void wait();
  void receive_some();
  void take(Source& source, std::span<const std::byte> bytes);
  void accept(Source& source, std::span<const std::byte> bytes);

  Rank rank_ = 0;
  int socket_ = -1;
  std::vector<Source> sources_;  // [rank]
  std::size_t missing_bytes_ = 0;
  std::array<std::byte, 2048> out_{}, in_{};
};

}  // namespace score::npb
