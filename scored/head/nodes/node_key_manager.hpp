#pragma once
// NodeKeyManager rotates and revokes the nodes' keys for `scadm key`. Jobs continue: a rotation
// keeps the node's connection, and a node daemon that restarts with a new key finds its jobs. Each
// change is in force, and answered, when the log has it. Thread: the loop's.

#include "base/os/log.hpp"
#include "proto/client.pb.h"
#include "proto/transport/key_ring.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/nodes/node_keys.hpp"
#include "scored/head/store/logged_file.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class NodeKeyManager {
 public:
  struct Parts {  // all must outlive the object
    const HeadConfig& config;
    NodeLinks& links;
    const proto::KeyRing& ring;
    CommitLog& commits;
  };

  // Receives the keys of the nodes with the log's receipt, or the error; called once.
  using Reply = std::function<void(const Result<Logged<wire::NodeKeyList>>&)>;

  // `directory` has the file of the keys.
  NodeKeyManager(Parts parts, const std::string& directory);

  // Reads the file. Errors: those of NodeKeys::load().
  [[nodiscard]] Status load();

  [[nodiscard]] const NodeKeys& keys() const { return keys_; }

  // Sets a handler that is called with the name of each node whose key was revoked. The handler
  // must close all connections that this key has proven.
  void on_revoked(std::function<void(const std::string&)> then) { on_revoked_ = std::move(then); }

  // Returns the key of an identity that may connect; `identity` may be any text.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity) const;
  // Returns why the node cannot connect with the key that it has, and what to do, separated by ":
  // ";
  // "" if nothing is known.
  [[nodiscard]] std::string fault_of(const std::string& node) const;
  // Records that a node has proven its identity, then calls `then`. If its key is the new one, the
  // old key is refused from then on, and a connection that the old key has proven is closed.
  void used(const proto::NodeIdentity& identity, std::function<void()> then);
  // Errors: NotFound (no such node), Malformed, and those of LoggedFile; after an error nothing has
  // changed.
  void execute(const Peer& peer, const wire::ManageKeys& command, const Reply& reply);

 private:
  [[nodiscard]] Result<std::vector<std::string>> nodes_of(const wire::ManageKeys& command) const;
  void change(const Peer& peer, std::vector<std::string> nodes, bool rotates, const Reply& reply);
  [[nodiscard]] wire::NodeKeyList list_of(const std::vector<std::string>& nodes,
                                          bool with_tokens) const;
  [[nodiscard]] wire::NodeKeyState state_of(const std::string& node) const;
  void add_token(wire::NodeKeyState& state) const;
  void disconnect(const std::string& node);

  Parts parts_;
  NodeKeys keys_;
  LoggedFile file_;
  std::function<void(const std::string&)> on_revoked_;
  // Nodes in whose name somebody has just used a key that is not accepted.
  mutable std::set<std::string, std::less<>> refused_;
};

}  // namespace score::head
