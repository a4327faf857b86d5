#pragma once
// Standby is a head that is not in charge. It listens for the nodes and the other head, follows the
// other head's log, and forwards the commands of this host to it. It ends when this head is elected
// or must stop.

#include "base/async/asio.hpp"
#include "base/async/blocking_calls.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "proto/transport/half_open.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/head/process/follower_page.hpp"
#include "scored/head/process/leader_election.hpp"
#include "scored/head/process/log_follower.hpp"
#include "scored/node/link/login_relay.hpp"

#include <memory>
#include <optional>
#include <string>

namespace score::head {

class Standby {
 public:
  struct Parts {  // all must outlive the object
    asio::io_context& io;
    Clock& clock;
    const HeadConfig& config;
    LeaderElection& election;
    Store& store;
    std::optional<int> commands;  // the socket that the service manager listens on
  };

  enum class End {
    Elected,  // the store belongs to the new head; its log has begun
    Stopped,  // by a signal
    Failed,   // the store cannot be used any more
  };

  explicit Standby(const Parts& parts);

  // Binds its listeners; must be called before LeaderElection::start(). Errors name the address.
  [[nodiscard]] Status open();
  // Runs until the standby ends; then its listeners are closed and its tasks have ended.
  asio::awaitable<End> run();

 private:
  Status open_commands();
  asio::awaitable<void> accept();
  asio::awaitable<void> serve(UniqueFd fd);
  asio::awaitable<void> handle_signals();
  asio::awaitable<void> feed_manager();
  void store_term(Epoch term);
  void store_vote(Epoch term);
  void take_charge(Epoch term);
  void broken(const Error& error);
  void end(End how);

  Parts parts_;
  proto::HalfOpen half_open_{limits::kMaxUnauthenticated};
  TaskGroup tasks_;
  BlockingCalls disk_;
  LogFollower follower_;
  node::LoginRelay relay_;
  FollowerPage page_;
  std::optional<proto::TcpListener> listener_;
  asio::experimental::channel<void(boost::system::error_code)> ended_;
  std::optional<End> how_;
};

}  // namespace score::head
