#pragma once
// A ClientSession is the connection of one command. Every frame goes through one dispatch function.
// Administrative commands go to Admin, which checks and audits them; for all others the session
// asks Permissions.

#include "base/async/asio.hpp"
#include "base/os/log.hpp"
#include "proto/client.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/head/admin/admin.hpp"
#include "scored/head/checkpoint/checkpoint_manager.hpp"
#include "scored/head/clients/monitoring.hpp"
#include "scored/head/clients/overview.hpp"
#include "scored/head/clients/turns.hpp"
#include "scored/head/clients/user_budget.hpp"
#include "scored/head/cluster/answer_channel.hpp"
#include "scored/head/cluster/facts_collector.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/trace_collector.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"
#include "scored/head/stacks/stacks_collector.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

class ClientSession {
 public:
  using KeysReply = std::function<void(const Result<Logged<wire::NodeKeyList>>&)>;
  using TokensReply = std::function<void(const Result<Logged<wire::TokenList>>&)>;

  struct Parts {  // all must outlive the session
    HeadContext& head;
    Submissions& submissions;
    JobLife& life;
    const JobQueries& queries;
    JobStreams& streams;
    const Overview& overview;
    TraceCollector& traces;
    FactsCollector& facts;
    StacksCollector& stacks;
    CheckpointManager& checkpoints;
    Admin& admin;
    FairShares& shares;
    Monitoring* monitoring = nullptr;  // null: monitoring is off
    std::function<void(const Peer&, const wire::ManageKeys&, const KeysReply&)> keys{};
    std::function<void(const Peer&, const wire::ManageTokens&, const TokensReply&)> tokens{};
  };

  struct Setup {
    ClientId id;
    Peer peer;
    std::shared_ptr<proto::Connection> connection;
    std::shared_ptr<UserBudget> budget;  // shared by all sessions of this user
    std::shared_ptr<Turns> turns;        // shared by all sessions; only run() uses it
    bool is_spare = false;               // beyond a connection limit: may end jobs, nothing else
  };

  // `parts` and `clock` must outlive run().
  ClientSession(const Parts& parts, Clock& clock, Setup setup);

  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Serves until the client closes the connection or breaks the protocol; then nothing of the
  // session is left.
  asio::awaitable<void> run();

  [[nodiscard]] bool is_idle(TimePoint now) const;

  void close() { answers_.frames()->close(); }

  [[nodiscard]] UserId user() const { return peer_.user; }

  [[nodiscard]] const std::string& via() const { return peer_.via; }

  // Returns true if the client is connected but has not said hello. A session that is being closed
  // does not count.
  [[nodiscard]] bool is_half_open() const { return !greeted_ && answers_.frames()->is_open(); }

  // Checks and handles one frame; returns false if the connection must be closed. Public for tests.
  bool dispatch(const proto::InFrame& frame);

 private:
  asio::awaitable<void> serve();
  asio::awaitable<void> identify();
  asio::awaitable<bool> take_turn(proto::InFrame frame);
  asio::awaitable<void> pay_for(const proto::InFrame& frame);
  asio::awaitable<void> learn_users(std::string payload);
  bool dispatch_command(const proto::InFrame& frame);
  template <class Message>
  bool handle(const proto::InFrame& frame);
  template <class Message>
  Status check(const Message& message, proto::FrameType type);
  // Passes an administrative command to Admin, which decides and replies.
  template <class Message>
  void administer(const Message& message);

  // A failure is sent as Failed with the request's tag.
  Status on(const wire::ClientHello& message);
  Status on(wire::Submit& message);
  Status on(wire::Plan& message);
  Status on(const wire::Attach& message);
  Status on(const wire::Detach& message);
  Status on(const wire::OutputTaken& message);
  Status on(wire::Input& message);
  Status on(const wire::Resize& message);
  Status on(const wire::ListJobs& message);
  Status on(const wire::ListReservations& message);
  Status on(const wire::ListNodes& message);
  Status on(const wire::ListShares& message);
  Status on(const wire::GetProfile& message);
  Status on(const wire::GetInfo& message);
  Status on(const wire::GetTrace& message);
  Status on(const wire::GetFacts& message);
  Status on(const wire::GetStacks& message);
  Status on(const wire::Checkpoint& message);
  Status on(const wire::GetAccounting& message);
  Status on(const wire::WatchCluster& message);
  Status on(const wire::WebLogin& message);
  Status on(const wire::ManageKeys& message);
  Status on(const wire::ManageTokens& message);

  void send_job(const wire::Attach& message, wire::JobStatus status, bool has_ended);
  // Replies Done with the text when the log confirms that this head may.
  Status done(std::uint64_t tag, std::string text = {});

  const Parts& parts_;
  Clock& clock_;
  ClientId id_;
  Peer peer_;
  AnswerChannel answers_;
  std::shared_ptr<UserBudget> budget_;
  std::shared_ptr<Turns> turns_;
  bool is_spare_;
  bool greeted_ = false;
  std::size_t attached_ = 0;
  std::optional<monitor::ViewerId> viewer_;
  TimePoint last_frame_{};
};

}  // namespace score::head
