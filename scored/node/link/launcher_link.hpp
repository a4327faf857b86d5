// Connects the node daemon to the launcher and to scored-rings through their sockets.
#pragma once

#include "scored/node/link/packet_link.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::node {

struct LaunchOrder {
  AttemptId attempt;
  UserId user;
  bool low_priority = false;
  bool scratch = false;         // the user needs a directory for a volume
  std::uint8_t checkpoint = 0;  // see launcher::StartRequest
  std::string denied{};  // devices, shorter than launcher::kDeniedBytes; see launcher::StartRequest
};

struct LaunchedShepherd {
  pid_t shepherd = 0;
  pid_t group = 0;
};

class LauncherLink {
 public:
  // `directory` contains both sockets. See PacketLink for `tasks`.
  LauncherLink(const std::string& directory, TaskGroup& tasks, const asio::any_io_executor& io);

  // `places` are descriptors as in launcher/protocol.hpp. They are passed by value, because they
  // live in the coroutine. Errors: see PacketLink::ask().
  asio::awaitable<Result<LaunchedShepherd>> launch(LaunchOrder order, std::vector<UniqueFd> places);

  // Asks for an Ethernet ring for one rank of a running attempt; only one request at a time per
  // attempt. Errors: as launch().
  struct RingPlace {
    std::uint64_t key = 0;
    std::uint32_t rank = 0;
    std::uint16_t channel = 0;
  };

  asio::awaitable<Result<UniqueFd>> open_ring(AttemptId attempt, RingPlace place);
  void close();

 private:
  PacketLink launcher_;
  PacketLink rings_;
};

}  // namespace score::node
