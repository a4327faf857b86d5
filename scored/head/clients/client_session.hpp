#pragma once
// One command's connection. Every frame goes through one dispatch point, which asks the permission
// table with the role its sender has (towards the job, if it is about one) before any handler runs.

#include "base/async/asio.hpp"
#include "base/async/token_bucket.hpp"
#include "base/os/log.hpp"
#include "monitor/http/site.hpp"
#include "proto/client.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/head/head.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

// What a session can ask of the daemon itself.
struct DaemonRequests {
  std::function<Status()> reload;
  std::function<void()> exit;     // after a shutdown: everything has ended
  monitor::Site* site = nullptr;  // null: nothing to watch
  std::function<Result<std::string>(const Peer&)> web_login{};
};

class ClientSession {
 public:
  struct Setup {
    ClientId id;
    Peer peer;
    std::shared_ptr<proto::Connection> connection;
    std::shared_ptr<TokenBucket> budget;  // of all sessions of this user
    bool is_spare = false;  // beyond a limit of connections: may end jobs, nothing else
  };

  // All but the setup must outlive run().
  ClientSession(Head& head, Clock& clock, const DaemonRequests& daemon, Setup setup);

  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Until the client goes away or breaks the protocol; then nothing of it is left in the head.
  asio::awaitable<void> run();

  // For the one who closes idle sessions.
  [[nodiscard]] bool is_idle(TimePoint now) const;

  void close() { connection_->close(); }

  [[nodiscard]] UserId user() const { return peer_.user; }

  // Connected, but has said no hello so far; not one that is being closed.
  [[nodiscard]] bool is_half_open() const { return !greeted_ && connection_->is_open(); }

  // Checks and handles one frame; false: the connection is of no more use. Public for tests.
  bool dispatch(const proto::InFrame& frame);

 private:
  asio::awaitable<void> serve();
  asio::awaitable<void> tell_refused(const Error& error);
  asio::awaitable<void> pay_for(proto::FrameType type);
  [[nodiscard]] Result<wire::ServerHello> greet(const wire::ClientHello& hello) const;

  template <class Message>
  bool handle(const proto::InFrame& frame);
  template <class Message>
  Result<proto::Role> role_for(const Message& message);

  // A failure becomes Failed with the request's tag.
  Status on(const wire::ClientHello& message);
  Status on(wire::Submit& message);
  Status on(wire::Plan& message);
  Status on(const wire::Attach& message);
  Status on(const wire::Detach& message);
  Status on(const wire::OutputTaken& message);
  Status on(wire::Input& message);
  Status on(const wire::Resize& message);
  Status on(const wire::SignalJob& message);
  Status on(const wire::CancelJob& message);
  Status on(const wire::ControlJob& message);
  Status on(const wire::ListJobs& message);
  Status on(const wire::ListNodes& message);
  Status on(const wire::GetInfo& message);
  Status on(const wire::GetTrace& message);
  Status on(const wire::GetAccounting& message);
  Status on(const wire::WatchCluster& message);
  Status on(const wire::WebLogin& message);
  Status on(const wire::SetQuantum& message);
  Status on(const wire::SetSlots& message);
  Status on(const wire::SetIdleDetection& message);
  Status on(const wire::DrainNodes& message);
  Status on(const wire::Reload& message);
  Status on(const wire::Shutdown& message);

  Status done(std::uint64_t tag, std::string text = {});

  Head& head_;
  Clock& clock_;
  const DaemonRequests& daemon_;
  ClientId id_;
  Peer peer_;
  std::shared_ptr<proto::Connection> connection_;
  std::shared_ptr<TokenBucket> budget_;
  bool is_spare_;
  bool greeted_ = false;
  std::size_t attached_ = 0;
  std::optional<monitor::ViewerId> viewer_;
  TimePoint last_frame_{};
};

}  // namespace score::head
