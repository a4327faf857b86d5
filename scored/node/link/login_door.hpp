// The door of a login node: commands of this host's users reach the head through its node daemon.
// It says who they are, as the kernel does (SO_PEERCRED), and carries frames; the head decides.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/log.hpp"
#include "proto/transport/tls_connection.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/node/link/login_budget.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace score::node {

class LoginDoor {
 public:
  struct Parts {
    asio::any_io_executor io;
    const proto::TlsContext& tls;
    Clock& clock;
    TaskGroup& tasks;
  };

  // What the parts refer to must outlive the tasks.
  LoginDoor(Parts parts, proto::TcpEndpoint head);

  // Lets commands in from now on. Errors name the path.
  [[nodiscard]] Status open(const std::string& path);
  // No more is let in; who is inside leaves with the tasks.
  void close();

 private:
  struct Presence;  // counts a command while its task runs
  using ConnectionPtr = std::shared_ptr<proto::Connection>;

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(proto::UnixPeer peer);
  [[nodiscard]] bool is_full(UserId user) const;

  Parts parts_;
  proto::TcpEndpoint head_;
  std::optional<proto::UnixListener> listener_;
  std::size_t count_ = 0;
  std::map<UserId, std::size_t> of_user_;
  LoginBudget budget_;
  LogLimiter limiter_;
};

}  // namespace score::node
