// Knows the names of this process and of its peers, and how long a message to each may be. In a
// job a peer is a rank; elsewhere a directory introduces the peers one by one.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/peers/directory.hpp"
#include "pmlib/fi/peers/name.hpp"

#include <cstddef>
#include <cstdint>

namespace score::pm::fi {

// Identifies an endpoint of a process.
struct PortName {
  std::uint32_t peer = 0;
  std::uint16_t port = 0;

  std::uint64_t number() const { return std::uint64_t{peer} << 16 | port; }

  bool operator==(const PortName&) const = default;
};

class Peers final : private Directory::Listener {
 public:
  // `directory` is the device of `pm`; null in a job.
  Peers(pm::Endpoint& pm, const Name& own, Directory* directory);

  Name name_of(std::uint16_t port) const;
  Name name_of_peer(PortName port) const;
  // Finds peer and port of a name. Errors: EINVAL if the name belongs to a different job; ENOSPC if
  // there are too many peers.
  int resolve(const Name& name, PortName& port);

  // Returns true if messages can be sent to the peer.
  bool is_ready(std::uint32_t peer) const { return !directory_ || directory_->is_ready(peer); }

  bool has_unready() const { return directory_ != nullptr && directory_->has_unready(); }

  // Repeats the introductions that are due. Requires has_unready().
  void introduce() { directory_->tick(now_ns() / 1000); }

  // Returns the bytes of one message, head and payload.
  std::size_t message_bytes(std::uint32_t peer) const { return pm_.message_bytes(peer); }

  // Returns the message length that every peer supports.
  std::size_t smallest_message() const;

 private:
  void on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) override;
  void on_address(std::uint32_t index, const PeerAddress& address) override;

  pm::Endpoint& pm_;
  Directory* directory_;
  Name name_;
};

}  // namespace score::pm::fi
