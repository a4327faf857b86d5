// How a shepherd is started, and how a running one is found again. Its socket is the daemon's:
// bound here, passed to the launcher, inherited by the shepherd. So it can be connected to before
// the shepherd runs, and its name in the directory, "attempt.user.sock", lets a restarted daemon
// find it and know its user, whatever the shepherd claims.
#pragma once

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "proto/convert/convert.hpp"
#include "scored/node/attempts/attempt.hpp"
#include "scored/node/attempts/counted_devices.hpp"
#include "scored/node/attempts/job_cores.hpp"

namespace score::node {

class ShepherdStart {
 public:
  struct Settings {
    std::string directory;      // of the shepherds' sockets
    bool low_priority = false;  // of the tasks
    JobLimits limits;           // on this node; the memory of jobs that request none
    JobCores cores;
    CountedDevices devices;
  };

  // `parts` outlives it.
  ShepherdStart(const AttemptParts& parts, Settings settings)
      : parts_(parts), settings_(std::move(settings)) {}

  [[nodiscard]] std::string socket_of(AttemptId attempt, std::optional<UserId> user) const;

  struct Name {
    AttemptId attempt;
    std::optional<UserId> user;  // none: of an earlier version
  };

  [[nodiscard]] const CountedDevices& devices() const { return settings_.devices; }

  [[nodiscard]] const JobCores& cores() const { return settings_.cores; }

  // Attempts that have a socket in the directory.
  [[nodiscard]] std::vector<Name> find_all() const;

  // Makes the cgroups, has the launcher start the shepherd, and connects.
  asio::awaitable<Result<void>> start(AttemptPtr attempt, base::PlacedTasks placed);
  asio::awaitable<Result<void>> connect(AttemptPtr attempt);
  // A shepherd of no job, for work as the user: in no cgroup of its own, and never adopted. One for
  // each id.
  asio::awaitable<Result<std::shared_ptr<proto::Connection>>> start_helper(AttemptId id,
                                                                           UserId user) const;
  // After request_report(): fills in the attempt from the shepherd's report, which is checked. What
  // the shepherd sent before it is skipped: the report contains it, or it is repeated.
  asio::awaitable<Result<proto::FoundAttempt>> read_report(AttemptPtr attempt);

 private:
  const AttemptParts& parts_;
  Settings settings_;
};

// Asks the shepherd to report and to repeat what may be lost. False: it is gone.
// Whether starting a shepherd may succeed when it is tried again: the launcher or the shepherd was
// killed meanwhile.
bool may_retry(const Error& error);
bool request_report(const Attempt& attempt);

[[nodiscard]] std::vector<std::uint32_t> ranks_of(const base::PlacedTasks& placed);

}  // namespace score::node
