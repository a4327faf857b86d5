// Starts shepherds, and finds running ones again. The daemon binds the socket of a shepherd and
// passes it to the launcher; the shepherd inherits it. So the daemon can connect before the
// shepherd runs. The name of the socket in the directory, "attempt.user.sock", lets a restarted
// daemon find the shepherd and know its user, regardless of what the shepherd claims.
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
    JobLimits limits;           // on this node; its memory is for jobs that request none
    JobCores cores;
    CountedDevices devices;
  };

  // `parts` must outlive it.
  ShepherdStart(const AttemptParts& parts, Settings settings)
      : parts_(parts), settings_(std::move(settings)) {}

  [[nodiscard]] std::string socket_of(AttemptId attempt, std::optional<UserId> user) const;

  struct Name {
    AttemptId attempt;
    std::optional<UserId> user;  // none: the socket is from an earlier version
  };

  [[nodiscard]] const CountedDevices& devices() const { return settings_.devices; }

  [[nodiscard]] const JobCores& cores() const { return settings_.cores; }

  // Returns the attempts that have a socket in the directory.
  [[nodiscard]] std::vector<Name> find_all() const;

  // Makes the cgroups, has the launcher start the shepherd, and connects.
  asio::awaitable<Result<void>> start(AttemptPtr attempt, base::PlacedTasks placed);
  asio::awaitable<Result<void>> connect(AttemptPtr attempt);
  // Starts a shepherd without a job, for work as the user. It has no cgroup of its own and is never
  // adopted. Only one may run per id.
  asio::awaitable<Result<std::shared_ptr<proto::Connection>>> start_helper(AttemptId id,
                                                                           UserId user) const;
  // Fills in the attempt from the shepherd's report after request_report(), and checks the report.
  // Frames that arrive before the report are skipped: the report contains them, or the shepherd
  // repeats them.
  asio::awaitable<Result<proto::FoundAttempt>> read_report(AttemptPtr attempt);

 private:
  [[nodiscard]] bool is_low_priority(const base::PlacedTasks& placed) const;

  const AttemptParts& parts_;
  Settings settings_;
};

// Asks the shepherd to report and to repeat what may be lost. Returns false if it is gone.
bool request_report(const Attempt& attempt);

[[nodiscard]] std::vector<std::uint32_t> ranks_of(const base::PlacedTasks& placed);

}  // namespace score::node
