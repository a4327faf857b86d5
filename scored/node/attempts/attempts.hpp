// Manages the attempts of this node outside gang::NodeAgent: their cgroups, sockets and shepherds,
// and the frames that pass between shepherds and the head. Carries out the agent's actions and
// reports the shepherds' events.
#pragma once

#include "scored/node/attempts/attempt.hpp"
#include "scored/node/attempts/attempt_end.hpp"
#include "scored/node/attempts/shepherd_frames.hpp"
#include "scored/node/attempts/shepherd_start.hpp"
#include "scored/node/attempts/usage_samples.hpp"
#include "scored/node/attempts/volume_sweeps.hpp"
#include "scored/node/link/login_relay.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::node {

class Attempts {
 public:
  struct Settings {
    ShepherdStart::Settings start;
    std::string node_name;
    std::string commands_socket;                        // for the commands that tasks start
    std::string scratch_path;                           // [pario] path; empty: no volumes here
    std::function<Result<std::string>()> scratch_host;  // this node's address for other nodes
  };

  using Found = std::function<void(const proto::FoundAttempt&)>;

  Attempts(AttemptParts parts, Settings settings, ShepherdFrames::Handlers handlers, Found found);
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  // ---- The agent's actions. They are ignored for an unknown attempt.
  // Leads to ShepherdReady, ShepherdRefused or ShepherdGone.
  void launch(gang::LaunchShepherd order);
  void start(AttemptId attempt);
  void signal(AttemptId attempt, int signal);
  // See AttemptEnd::kill().
  void kill(AttemptId attempt);
  // Is called when the tasks have ended; only the shepherd is kept.
  void retire(AttemptId attempt);
  void remove(AttemptId attempt);

  // Passes a frame on to its shepherd, or keeps the secret in it. Returns false if the frame is not
  // of a type that passes through, or is malformed.
  bool from_head(const proto::InFrame& frame);

  // Returns the function for LoginRelay::Parts. It must not be called after this object is gone.
  [[nodiscard]] LoginRelay::Prove prover() const {
    return [this](const PeerCredentials& peer, wire::LoginHello& hello) { prove(peer, hello); };
  }

  // Must be called when the head has welcomed the node. Frames in flight may have been lost, so the
  // shepherds repeat them. `takes_samples`: the head knows UsageSample.
  void resume_all(bool takes_samples);
  // Finds the shepherds that have survived a restart of the daemon, calls `found` for each, and
  // removes what is left of the other attempts.
  asio::awaitable<void> adopt_all();

  [[nodiscard]] bool empty() const { return attempts_.empty(); }

  // Describes the tasks of an attempt for the sampler. The pids are those that the shepherds
  // report.
  struct RunningTasks {
    AttemptId attempt{};
    std::vector<std::uint32_t> ranks;  // of this node
    std::vector<pid_t> pids;           // of these ranks
    pid_t shepherd = 0;
  };

  [[nodiscard]] std::vector<RunningTasks> running() const;
  [[nodiscard]] std::size_t running_count() const;
  // Returns null for an unknown attempt.
  [[nodiscard]] AttemptPtr find(AttemptId attempt) const;
  // Returns the last samples that the servers of jobs' volumes on this node have sent.
  [[nodiscard]] std::vector<const wire::ScratchSample*> volumes() const;

 private:
  // Returns true if tasks run here of a job that the attempt's output would slow down.
  [[nodiscard]] bool has_others(const Attempt& attempt) const;
  AttemptPtr add(AttemptId attempt, std::optional<UserId> user = {});
  void keep_secret(const wire::AttemptSecret& message) const;
  // Adds the attempt that the command is a process of, and its secret; nothing if there is none.
  void prove(const PeerCredentials& peer, wire::LoginHello& hello) const;
  // `before` is null, or it is an earlier attempt of the same number whose removal is not finished.
  asio::awaitable<void> run_new(AttemptPtr attempt, AttemptPtr before, gang::LaunchShepherd order);
  // Runs the prolog of the attempt's job, if it has one.
  asio::awaitable<Status> begin_hooks(AttemptPtr attempt, gang::LaunchShepherd order);
  // Returns handlers that report the end of an attempt only after its epilog.
  [[nodiscard]] ShepherdFrames::Handlers after_epilog(ShepherdFrames::Handlers handlers);
  asio::awaitable<void> finish(AttemptPtr attempt, std::function<void()> report_end);
  void resume_epilogs();
  asio::awaitable<void> run_remove(AttemptPtr attempt);
  asio::awaitable<void> adopt(AttemptPtr attempt, TimePoint deadline);
  asio::awaitable<void> watch_memory();
  void give_up(const Attempt& attempt, const Error& why);
  [[nodiscard]] Status prepare(Attempt& attempt, const gang::LaunchShepherd& order);
  void follow_plan(const Attempt& attempt, const base::PlacedTasks& placed);

  AttemptParts parts_;
  std::string node_name_;
  std::string commands_socket_;
  std::string scratch_path_;
  std::function<Result<std::string>()> scratch_host_;
  ShepherdStart shepherds_;
  VolumeSweeps sweeps_;
  ShepherdFrames frames_;
  AttemptEnd end_;
  UsageSamples samples_;
  Found found_;
  std::map<AttemptId, AttemptPtr> attempts_;
};

}  // namespace score::node
