// Relays commands of this host's users to the head. It passes on each user's identity as the kernel
// reports it (SO_PEERCRED), for a command of a task also the proof of that, and frames in both
// directions. The head decides what is allowed.
#pragma once

#include "base/async/byte_budget.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/shares.hpp"
#include "proto/node.pb.h"
#include "proto/transport/tls_connection.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/node/link/user_pace.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace score::node {

class LoginRelay {
 public:
  // Adds the proof that a task of a job here has started the command.
  using Prove = std::function<void(const PeerCredentials&, wire::LoginHello&)>;

  struct Parts {
    asio::any_io_executor io;
    const proto::TlsContext& tls;
    Clock& clock;
    TaskGroup& tasks;
    Prove prove{};
  };

  // The objects that the parts refer to must outlive the tasks.
  LoginRelay(Parts parts, proto::TcpEndpoint head);

  // Starts to accept commands. Errors name the path.
  [[nodiscard]] Status open(const std::string& path);
  // Does the same with a socket that was opened before, with the limits of connection_limits().
  void adopt(proto::UnixListener listener);
  [[nodiscard]] static proto::ConnectionLimits connection_limits();

  // Sets the head for commands, with two heads; must be called for each new term. The connections
  // of running commands are closed, because a host that lost power has closed none. scrun then
  // reconnects.
  void set_head(const proto::TcpEndpoint& head);

  // `why_not` is called for each command and returns why it is refused, or "" to pass it on.
  void ask_first(std::function<std::string()> why_not) { why_not_ = std::move(why_not); }

  // Accepts no more commands; running ones end with the tasks.
  void close();

 private:
  static constexpr double kConnectionsPerSecond = 50;  // of a user to the head, in the long run
  static constexpr double kConnectionsAtOnce = 200;

  struct Presence;  // counts a command while its task runs

  struct PerUser {
    ByteBudget incoming{limits::kMaxUserRequestBytes, limits::kMaxUserRequestBytes};
    ByteBudget outgoing{limits::kUserQueueRoom, limits::kMaxUserQueueBytes};
  };

  using PerUserPtr = std::shared_ptr<PerUser>;
  using ConnectionPtr = std::shared_ptr<proto::Connection>;

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(proto::UnixPeer peer);
  asio::awaitable<Result<proto::InFrame>> first_frame(UserId user, ConnectionPtr client);
  bool close_silent(UserId user);
  asio::awaitable<Result<ConnectionPtr>> reach_head();
  asio::awaitable<void> carry(ConnectionPtr from, ConnectionPtr to, proto::Role sender);

  Parts parts_;
  proto::TcpEndpoint head_;
  std::optional<proto::UnixListener> listener_;
  ShareCounter<UserId> counts_{shares::kLogins};
  std::map<UserId, PerUserPtr> of_user_;
  std::map<std::uint64_t, std::pair<UserId, ConnectionPtr>> silent_;  // have sent nothing yet
  std::uint64_t next_silent_ = 0;
  std::set<ConnectionPtr> links_;  // to the head
  std::function<std::string()> why_not_;
  // Each connection to the head costs both sides a handshake.
  UserPace pace_{kConnectionsPerSecond, kConnectionsAtOnce};
  LogLimiter limiter_;
};

}  // namespace score::node
