// Relays commands of a login node's users to the head. It passes on each user's identity as the
// kernel reports it (SO_PEERCRED), and frames in both directions; the head decides.
#pragma once

#include "base/async/byte_budget.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "proto/transport/tls_connection.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/node/link/login_budget.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace score::node {

class LoginRelay {
 public:
  struct Parts {
    asio::any_io_executor io;
    const proto::TlsContext& tls;
    Clock& clock;
    TaskGroup& tasks;
  };

  // What the parts refer to must outlive the tasks.
  LoginRelay(Parts parts, proto::TcpEndpoint head);

  // Accepts commands from now on. Errors name the path.
  [[nodiscard]] Status open(const std::string& path);
  // Accepts no more; running commands end with the tasks.
  void close();

 private:
  struct Presence;  // counts a command while its task runs

  struct PerUser {
    std::size_t count = 0;
    ByteBudget incoming{limits::kMaxUserRequestBytes, limits::kMaxUserRequestBytes};
    ByteBudget outgoing{limits::kUserQueueRoom, limits::kMaxUserQueueBytes};
  };

  using PerUserPtr = std::shared_ptr<PerUser>;
  using ConnectionPtr = std::shared_ptr<proto::Connection>;

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(proto::UnixPeer peer);
  asio::awaitable<void> carry(ConnectionPtr from, ConnectionPtr to, proto::Role sender);
  [[nodiscard]] bool is_full(UserId user) const;

  Parts parts_;
  proto::TcpEndpoint head_;
  std::optional<proto::UnixListener> listener_;
  std::size_t count_ = 0;
  std::map<UserId, PerUserPtr> of_user_;
  LoginBudget budget_;
  LogLimiter limiter_;
};

}  // namespace score::node
