// Manages the UDP sockets of this node's channels: one per user, channel and local task. Jobs that
// share a channel get the same socket in turn; the key in each frame identifies its job. Users
// never share a socket: a user who holds one can read its frames, and connect or filter it.
#pragma once

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "pmlib/wire/frame_filter.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <span>
#include <string>
#include <vector>

namespace score::node {

struct ChannelSocket {
  UniqueFd fd;
  std::array<char, 6> address{};  // IPv4 and port, in the format of pm::PeerAddress
  std::uint64_t holder = 0;  // key of the attempt that used it last; only the switcher uses this
  bool is_adopted = false;   // attempts that this daemon does not know yet may use it
};

class ChannelSockets {
 public:
  struct Place {
    UserId user;
    std::uint16_t channel = 0;
    std::uint32_t task = 0;  // local; with several links: task times their number plus the link's

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  // Returns the socket of the place, which is shared with all holders. Errors: errno codes.
  Result<std::shared_ptr<ChannelSocket>> open(const Place& place, in_addr local);
  // Takes the socket from a shepherd that has kept it while the daemon was down. If several are
  // adopted for a place, the first one is used. Errors: Malformed (not a UDP socket).
  Result<std::shared_ptr<ChannelSocket>> adopt(const Place& place, UniqueFd fd);

 private:
  std::map<Place, std::weak_ptr<ChannelSocket>> sockets_;
};

// Sets a filter with which the kernel drops frames for any attempt other than `owners`. These must
// be all attempts that share the socket, because frames of the next one may be early and those of
// the last one late. An adopted socket, and one with too many owners, accepts everything.
void pass_only(const ChannelSocket& socket, std::uint16_t channel,
               std::span<const pm::FrameOwner> owners);

// Returns a TCP socket that reserves a port of `local` for a program that binds it with
// SO_REUSEADDR, as libfabric does. Errors: errno codes.
[[nodiscard]] Result<UniqueFd> keep_tcp_port(in_addr local);

// Returns the first IPv4 address of a host. Errors: NotFound.
[[nodiscard]] Result<in_addr> address_of_host(const std::string& host);
// Returns this host's source address for packets to `host`. Errors: errno codes, NotFound.
[[nodiscard]] Result<in_addr> address_towards(const std::string& host);
// Returns the first IPv4 address of an interface. Errors: errno codes, NotFound.
[[nodiscard]] Result<in_addr> address_of_interface(const std::string& interface);

}  // namespace score::node
