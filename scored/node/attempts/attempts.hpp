// The attempts of this node outside the brain: their cgroups, sockets and shepherds, and the bytes
// that pass between shepherds and the head. Carries out what gang::NodeAgent wants, tells what
// shepherds say.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/fd.hpp"
#include "gang/node/node_agent.hpp"
#include "proto/convert/convert.hpp"
#include "proto/transport/connection.hpp"
#include "scored/node/attempts/job_cgroups.hpp"
#include "scored/node/attempts/launcher_link.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/network/networks.hpp"
#include "scored/node/switch/switcher.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

class Attempts {
 public:
  // All outlive it; tasks is stopped first.
  struct Parts {
    asio::any_io_executor io;
    Clock& clock;
    TaskGroup& tasks;
    LauncherLink& launcher;
    HeadLink& head;
    Switcher& switcher;
    Networks& networks;
    const JobCgroups* cgroups;  // null: process groups
  };

  struct Settings {
    std::string directory;  // of the shepherds' sockets
    std::string node_name;
    bool low_priority = false;  // of the tasks
  };

  struct Handlers {
    std::function<void(AttemptId, const gang::ShepherdEvent&)> event;
    // The daemon ends the attempt for this reason.
    std::function<void(AttemptId, std::string)> ended;
    std::function<void(const proto::FoundAttempt&)> found;
  };

  Attempts(Parts parts, Settings settings, Handlers handlers);

  // ---- what the brain wants. About an attempt that is not there: nothing happens.
  void launch(gang::LaunchShepherd order);  // ends in ShepherdReady, ShepherdRefused or Gone
  void start(AttemptId attempt);
  void signal(AttemptId attempt, int signal);
  // SIGKILL to all tasks; after kStubborn to the shepherd too.
  void kill(AttemptId attempt);
  void remove(AttemptId attempt);

  // A frame for a shepherd. False: it is not one of those that pass through, or broken.
  bool from_head(const proto::InFrame& frame);
  // The head greeted: everything that was under way may be lost, so the shepherds say it again.
  void resume_all();
  // After a start of the daemon: finds the shepherds that live, calls `found` for each, and removes
  // what is left of those that do not.
  asio::awaitable<void> adopt_all();

  [[nodiscard]] bool empty() const { return attempts_.empty(); }

  // What runs here, for the sampler. The pids are the shepherds' word.
  struct RunningTasks {
    AttemptId attempt{};
    std::vector<std::uint32_t> ranks;  // of this node
    std::vector<pid_t> pids;           // of these ranks
    pid_t shepherd = 0;
  };

  [[nodiscard]] std::vector<RunningTasks> running() const;
  [[nodiscard]] std::size_t running_count() const;

 private:
  struct Attempt {
    AttemptId id{};
    std::string socket;
    std::optional<UserId> user;  // whose it is: the launcher was told, or the socket's name says
    Bytes memory{};
    std::vector<std::uint32_t> ranks;       // of its tasks here
    std::vector<pid_t> tasks;               // once they started
    std::vector<std::uint32_t> was_ending;  // ranks that were to be killed too late
    std::shared_ptr<proto::Connection> connection;
    pid_t shepherd = 0;
    pid_t group = 0;
    UniqueFd pidfd;  // of the shepherd
    bool is_killed = false;
    bool is_removed = false;
    bool is_resuming = false;  // until the report comes, what passes through is repeated after it
    bool is_unconfirmed = false;  // output was sent; the head may not have it yet
  };

  using AttemptPtr = std::shared_ptr<Attempt>;

  AttemptPtr find(AttemptId attempt) const;
  AttemptPtr add(AttemptId attempt, std::optional<UserId> user = {});
  // attempt_start.cpp
  asio::awaitable<void> run_new(AttemptPtr attempt, gang::LaunchShepherd order);
  asio::awaitable<Result<void>> start_shepherd(AttemptPtr attempt, base::PlacedTasks placed);
  asio::awaitable<Result<void>> connect(AttemptPtr attempt);

  struct Name {
    AttemptId attempt;
    std::optional<UserId> user;  // none: of an earlier version
  };

  [[nodiscard]] std::vector<Name> named() const;  // that have a socket in the directory
  bool send_resume(const Attempt& attempt);
  asio::awaitable<Result<proto::FoundAttempt>> read_report(AttemptPtr attempt);
  asio::awaitable<void> adopt(AttemptPtr attempt, TimePoint deadline);
  void give_up(const Attempt& attempt, const Error& why);
  void prepare(Attempt& attempt, const gang::LaunchShepherd& order);
  void follow_plan(const Attempt& attempt);
  // attempts.cpp
  asio::awaitable<void> run_kill(AttemptPtr attempt);
  asio::awaitable<void> run_remove(AttemptPtr attempt);
  void kill_tasks(Attempt& attempt);
  static void note_ending(Attempt& attempt);
  void kill_everything(Attempt& attempt);
  [[nodiscard]] bool is_gone(const Attempt& attempt) const;
  // attempt_frames.cpp
  asio::awaitable<void> read_frames(AttemptPtr attempt);
  asio::awaitable<bool> may_end(AttemptPtr attempt);
  bool on_frame(Attempt& attempt, const proto::InFrame& frame);
  bool on_event(Attempt& attempt, const proto::InFrame& frame);
  bool on_task_ended(Attempt& attempt, const proto::InFrame& frame);
  template <class Message>
  bool pass_to_head(Attempt& attempt, const proto::InFrame& frame);
  template <class Message>
  bool pass_to_shepherd(const proto::InFrame& frame);

  Parts parts_;
  Settings settings_;
  Handlers handlers_;
  std::map<AttemptId, AttemptPtr> attempts_;
};

}  // namespace score::node
