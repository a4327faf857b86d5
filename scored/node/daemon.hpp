// Connects the parts of the node daemon: gang::NodeAgent decides, and NodeDaemon carries out its
// actions. It has one thread, besides the switcher's.
#pragma once

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "gang/node/node_agent.hpp"
#include "scored/node/attempts/attempts.hpp"
#include "scored/node/config.hpp"
#include "scored/node/control/node_control.hpp"
#include "scored/node/hooks/node_hooks.hpp"
#include "scored/node/link/given_job.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/link/launcher_link.hpp"
#include "scored/node/link/login_relay.hpp"
#include "scored/node/link/thaw_guard.hpp"
#include "scored/node/link/witness_links.hpp"
#include "scored/node/memory/parker.hpp"
#include "scored/node/observe/metrics.hpp"
#include "scored/node/observe/sampling.hpp"
#include "scored/node/observe/vitals.hpp"
#include "scored/node/switch/switcher.hpp"

#include <optional>
#include <string>

namespace score::node {

class NodeDaemon {
 public:
  // All must outlive it. The switcher has been started. `cgroups` is null if process groups are
  // used.
  struct Parts {
    asio::io_context& io;
    Clock& clock;
    const proto::TlsContext& tls;
    Switcher& switcher;
    const JobCgroups* cgroups;
  };

  // `config` must be complete.
  NodeDaemon(Parts parts, NodeConfig config);

  // Adopts the living shepherds, then serves until SIGTERM or SIGINT. Jobs keep running, thawed.
  asio::awaitable<void> run();

 private:
  ShepherdFrames::Handlers shepherd_handlers();
  HeadLink::Handlers head_handlers();

  void carry_out(gang::NodeActions actions);
  void carry_out_one(gang::NodeAction action);
  void launch(gang::LaunchShepherd order);
  void follow(gang::FollowPlan order);
  void send(const base::NodeToHead& message);

  void on_frame(const proto::InFrame& frame);
  void on_timetable(const std::string& timetable);
  void on_welcome(const proto::InFrame& frame);
  void on_refused(const proto::InFrame& frame);
  void on_heartbeat_reply(const proto::InFrame& frame);
  void on_trace_request(const proto::InFrame& frame);
  void on_facts_request(const proto::InFrame& frame);
  void on_attempt_request(const proto::InFrame& frame);
  void on_watch(const proto::InFrame& frame);

  // `asks` requests a reply, which makes it a clock exchange.
  void beat(bool asks);
  void beat_over_tls(unsigned beats_an_exchange);
  void set_guard();
  asio::awaitable<void> beat_regularly();
  void report_late();
  asio::awaitable<void> synchronise(std::uint64_t generation);
  void renew_lease();
  asio::awaitable<void> watch_activity();
  void report_activities();
  void report_activity(AttemptId attempt, bool is_idle);
  void read_activities_again();
  void follow_heads();  // obeys the head to which it has granted the lease
  asio::awaitable<void> feed_watchdog(Duration period);
  asio::awaitable<void> wait_for_signal();
  asio::awaitable<Status> announce_stop();
  void note_status();
  [[nodiscard]] wire::Switching switching() const;
  Parker::Parts parker_parts();

  Parts parts_;
  NodeConfig config_;
  gang::NodeAgent agent_;
  TaskGroup tasks_;
  LauncherLink launcher_;
  ThawGuard guard_;
  HeadLink head_;
  NodeControl control_;
  Networks networks_;
  NodeHooks hooks_;
  Parker parker_;
  Attempts attempts_;
  Sampling sampling_;
  std::optional<Metrics> metrics_;  // if they are enabled
  Vitals vitals_;
  std::uint64_t head_epoch_ = 0;  // the greatest incarnation of the head seen
  std::string head_proof_;        // ... and its proof, to show to an older head
  const std::uint64_t instance_ = RequestId::random().low;
  GivenJob given_job_;
  LoginRelay login_;
  std::optional<WitnessLinks> witness_;  // with two heads
  Duration lease_;
  bool keeps_lease_ = false;
  bool switcher_hangs_ = false;
  bool is_stopping_ = false;
  std::string status_;  // status line for the service manager
  unsigned beats_ = 0;  // on this connection
};

}  // namespace score::node
