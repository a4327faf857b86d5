#pragma once
// Rotation and revocation of the nodes' keys: `scadm key`. Jobs go on: a node keeps its connection,
// and a node daemon that is restarted with a new key finds its jobs. Thread: the loop's.

#include "base/os/log.hpp"
#include "proto/client.pb.h"
#include "proto/transport/key_ring.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/nodes/node_keys.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class KeyDesk {
 public:
  struct Parts {  // all outlive it
    const HeadConfig& config;
    NodeLinks& links;
    const proto::KeyRing& ring;
    NodeKeys& keys;
  };

  explicit KeyDesk(Parts parts) : parts_(parts) {}

  // Told the name of a node whose key was revoked: nothing that was proven by it stays connected.
  void on_revoked(std::function<void(const std::string&)> then) { on_revoked_ = std::move(then); }

  // The key of an identity that may connect; any text may be given.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity) const;
  // A node has proven its identity. If its key is the new one, the old one is refused from now on,
  // and a connection that was proven by it is closed.
  void used(const proto::NodeIdentity& identity);
  // Errors: NotFound (no such node), Malformed, and the file's: nothing has changed then.
  [[nodiscard]] Result<wire::NodeKeyList> execute(const Peer& peer,
                                                  const wire::ManageKeys& command);

 private:
  [[nodiscard]] Result<std::vector<std::string>> nodes_of(const wire::ManageKeys& command) const;
  [[nodiscard]] wire::NodeKeyState state_of(const std::string& node) const;
  void add_token(wire::NodeKeyState& state) const;
  void disconnect(const std::string& node);

  Parts parts_;
  std::function<void(const std::string&)> on_revoked_;
};

}  // namespace score::head
