#pragma once
// Daemon runs the head and its server with signals, the service manager and an orderly stop.

#include "base/async/asio.hpp"
#include "base/async/blocking_calls.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/api/head_api.hpp"
#include "scored/head/api/personal_tokens.hpp"
#include "scored/head/clients/monitoring.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/head.hpp"
#include "scored/head/notices/notice_sender.hpp"
#include "scored/head/process/leader_election.hpp"
#include "scored/head/process/log_shipper.hpp"
#include "scored/head/process/server.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

inline constexpr int kCannotStart = 1;  // exit code of a head

class Daemon {
 public:
  struct Options {
    HeadConfig config;
    std::optional<LogLevel> log_level{};  // from the command line
    bool recover = false;                 // --recover
  };

  // Election describes a head that was elected (docs/adr/0089).
  struct Election {
    LeaderElection* election = nullptr;  // must outlive the daemon
    Store store;                         // its log has begun
    Epoch term;
    std::optional<int> commands{};      // the socket that the service manager listens on
    std::function<void()> start_again;  // called to stand down; does not return
  };

  // `io` must outlive this object.
  Daemon(asio::io_context& io, Options options);

  Status start();
  Status start(Election election);
  // Runs until it must stop, and returns the exit status.
  int run();

 private:
  Status start_with(Store store, const proto::KeyRing& keys);
  void follow_charge();
  asio::awaitable<void> handle_signals();
  asio::awaitable<void> feed_manager();
  asio::awaitable<void> stop();
  [[nodiscard]] Result<HeadConfig> read_configuration() const;
  void reload();
  [[nodiscard]] Status open_monitoring();
  void open_control();
  void exit_with(int status);

  asio::io_context& io_;
  Options options_;
  HeadConfig config_;
  SteadyClock clock_;
  BlockingCalls directory_;  // of users
  std::unique_ptr<Head> head_;
  std::optional<Server> server_;
  TaskGroup tasks_;
  std::optional<PersonalTokens> tokens_;
  std::optional<HeadApi> api_;
  std::optional<Monitoring> monitoring_;
  std::optional<NoticeSender> notices_;
  std::optional<Election> election_;   // after the start its store is the head's
  std::optional<LogShipper> shipper_;  // with two heads
  asio::experimental::channel<void(boost::system::error_code)> exit_;
  int exit_status_ = 0;
  bool is_ending_ = false;
};

// Makes one level; an existing directory is checked where it is used.
[[nodiscard]] Status make_directory(const std::string& path, mode_t mode);

}  // namespace score::head
