#pragma once
// Server has the head's listeners: a Unix socket for commands, and TLS for nodes. It limits the
// connections, reserves some for ending jobs when all others are in use, and closes idle ones.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/shares.hpp"
#include "proto/transport/half_open.hpp"
#include "proto/transport/tls_connection.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/head/clients/client_session.hpp"
#include "scored/head/head.hpp"
#include "scored/head/nodes/node_key_manager.hpp"
#include "scored/head/nodes/setup_manager.hpp"
#include "scored/head/process/leader_election.hpp"

#include <map>
#include <memory>
#include <optional>

namespace score::head {

struct ServerLimits {
  std::size_t clients = 0;  // in all
  std::size_t clients_per_user = 0;
  std::size_t spare_clients = 0;  // additional ones, for ending jobs
  std::size_t half_open_nodes = 0;
};

// Returns what the descriptors of this process allow, within base/limits.hpp. Raises the soft
// limit.
[[nodiscard]] ServerLimits server_limits(std::size_t nodes);

class Server {
 public:
  // All parameters must outlive this object, and it must outlive the tasks it spawned.
  Server(asio::io_context& io, Clock& clock, Head& head, ClientSession::Parts clients);

  // Binds both listeners; they accept from start() on. Errors name the address.
  [[nodiscard]] Status open(const HeadConfig& config, const proto::KeyRing& ring,
                            ServerLimits limits);
  void start(TaskGroup& tasks);

  // With two heads, sets the LeaderElection that takes connections of witnesses and of the other
  // head. Must be called before open().
  void set_charge(LeaderElection& election) { election_ = &election; }

  // Sets the socket that open() uses for commands; must be called before open().
  void use_socket(UniqueFd socket) { passed_ = std::move(socket); }

  // May be called after open().
  [[nodiscard]] NodeKeyManager& keys() { return *node_key_manager_; }

  // Serves a connection of this process itself as one of a command of this user (the API).
  void admit_own(UserId user, std::shared_ptr<proto::Connection> connection) {
    admit(user, std::move(connection), {.via = "api"});
  }

  // Closes the listeners and every command's connection. Their tasks end soon afterwards.
  void close();

  [[nodiscard]] std::uint16_t node_port() const { return nodes_->port(); }

  [[nodiscard]] std::size_t client_count() const { return clients_.size(); }

 private:
  struct Presence;  // counts a client while its task runs

  asio::awaitable<void> accept_clients();

  // Origin is where the user's command runs.
  struct Origin {
    std::string via = "socket";       // for the audit: or the name of the node
    std::optional<TaskPlace> task{};  // see Peer
  };

  void admit(UserId user, std::shared_ptr<proto::Connection> connection, Origin origin);
  void admit_login(const proto::TlsPeer& node, const proto::InFrame& hello);
  [[nodiscard]] bool is_login_node(const std::string& node) const;
  [[nodiscard]] std::string refusal_of(const std::string& node) const;
  bool close_half_open(std::optional<UserId> user);
  void close_clients_of(const std::string& login_node);
  asio::awaitable<void> serve_client(std::shared_ptr<ClientSession> session, UserId user,
                                     bool is_spare);
  asio::awaitable<void> accept_nodes();
  asio::awaitable<void> serve_node(UniqueFd fd);
  asio::awaitable<void> serve_head(proto::TlsPeer peer);
  asio::awaitable<void> note_use(proto::NodeIdentity identity);
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity) const;
  [[nodiscard]] Result<proto::UnixListener> listen_for_commands(const HeadConfig& config);
  asio::awaitable<void> close_idle();

  asio::io_context& io_;
  Clock& clock_;
  std::shared_ptr<Turns> turns_;
  Head& head_;
  ClientSession::Parts for_clients_;
  NodeSession::Parts for_nodes_;
  ServerLimits limits_;
  std::unique_ptr<proto::TlsContext> tls_;
  std::optional<proto::KeyRing> ring_;
  std::optional<NodeKeyManager> node_key_manager_;
  std::optional<SetupManager> setup_;
  std::optional<proto::UnixListener> commands_;
  std::optional<proto::TcpListener> nodes_;
  TaskGroup* tasks_ = nullptr;
  LeaderElection* election_ = nullptr;
  std::optional<UniqueFd> passed_;
  std::uint64_t next_client_ = 1;
  std::map<std::uint64_t, std::shared_ptr<ClientSession>> clients_;
  ShareCounter<UserId> counts_{shares::kClients};
  std::map<UserId, std::shared_ptr<UserBudget>> budgets_;
  std::size_t spare_ = 0;
  proto::HalfOpen half_open_{limits::kMaxUnauthenticated};  // of nodes
  LogLimiter limiter_;
};

}  // namespace score::head
