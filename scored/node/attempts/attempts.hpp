// The attempts of this node outside gang::NodeAgent: their cgroups, sockets and shepherds, and the
// bytes that pass between shepherds and the head. Carries out the agent's actions and reports the
// shepherds' events.
#pragma once

#include "scored/node/attempts/attempt.hpp"
#include "scored/node/attempts/attempt_end.hpp"
#include "scored/node/attempts/shepherd_frames.hpp"
#include "scored/node/attempts/shepherd_start.hpp"
#include "scored/node/attempts/volume_sweeps.hpp"

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
    std::function<Result<std::string>()> scratch_host;  // where other nodes reach this one
  };

  using Found = std::function<void(const proto::FoundAttempt&)>;

  Attempts(AttemptParts parts, Settings settings, ShepherdFrames::Handlers handlers, Found found);
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  // ---- the agent's actions. Ignored for an unknown attempt.
  void launch(gang::LaunchShepherd order);  // ends in ShepherdReady, ShepherdRefused or Gone
  void start(AttemptId attempt);
  void signal(AttemptId attempt, int signal);
  // See AttemptEnd::kill().
  void kill(AttemptId attempt);
  // Its tasks have ended; only its shepherd is kept.
  void retire(AttemptId attempt);
  void remove(AttemptId attempt);

  // A frame for a shepherd. False: it is not one of those that pass through, or malformed.
  bool from_head(const proto::InFrame& frame);
  // The head welcomed the node: frames in flight may be lost, so the shepherds repeat them.
  void resume_all();
  // After a start of the daemon: finds the shepherds that live, calls `found` for each, and removes
  // what is left of the others.
  asio::awaitable<void> adopt_all();

  [[nodiscard]] bool empty() const { return attempts_.empty(); }

  // For the sampler. The pids are as the shepherds report them.
  struct RunningTasks {
    AttemptId attempt{};
    std::vector<std::uint32_t> ranks;  // of this node
    std::vector<pid_t> pids;           // of these ranks
    pid_t shepherd = 0;
  };

  [[nodiscard]] std::vector<RunningTasks> running() const;
  [[nodiscard]] std::size_t running_count() const;
  // What the servers of jobs' volumes here counted last.
  [[nodiscard]] std::vector<const wire::ScratchSample*> volumes() const;

 private:
  // Whether jobs that its output would slow have tasks here.
  [[nodiscard]] bool has_others(const Attempt& attempt) const;
  AttemptPtr find(AttemptId attempt) const;
  AttemptPtr add(AttemptId attempt, std::optional<UserId> user = {});
  // before: an earlier one of the same number that is being removed, or null.
  asio::awaitable<void> run_new(AttemptPtr attempt, AttemptPtr before, gang::LaunchShepherd order);
  asio::awaitable<void> run_remove(AttemptPtr attempt);
  asio::awaitable<void> adopt(AttemptPtr attempt, TimePoint deadline);
  void give_up(const Attempt& attempt, const Error& why);
  [[nodiscard]] Status prepare(const Attempt& attempt, const gang::LaunchShepherd& order);
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
  Found found_;
  std::map<AttemptId, AttemptPtr> attempts_;
};

}  // namespace score::node
