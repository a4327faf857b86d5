#pragma once
// Requests carries out the requests of users and operators about jobs. A refused request changes
// nothing.

#include "gang/lifecycle/launching.hpp"
#include "gang/lifecycle/parking.hpp"

#include <string>

namespace score::gang {

enum class EndCause : std::uint8_t { User, Operator, FrontEndGone, Shutdown, TimeLimit };

// JobRequest lists the requests about an existing job.
enum class JobRequest : std::uint8_t {
  Signal,
  Suspend,
  Resume,
  Hold,
  Release,
  SetWeight,
  SetPriority,
  Requeue,
};

class Requests {
 public:
  struct Parts {
    Tables& tables;
    Placer& placer;
    Ending& ending;
    IdleJobs& idle;
    Launching& launching;
    const Publisher& publisher;
    Parking& parking;
  };

  explicit Requests(const Parts& parts) : p_(parts) {}

  // Checks whether the request would be accepted now. `number` is the signal or the weight.
  [[nodiscard]] base::Result<void> check(JobId id, JobRequest request, std::int64_t number) const;
  base::Result<void> submit(JobId id, UserId user, const base::ResourceRequest& request,
                            Step& step);
  base::Result<void> cancel(JobId id, EndCause cause, Step& step);
  base::Result<void> signal(JobId id, int signal, Step& step);
  base::Result<void> suspend(JobId id, Step& step);
  base::Result<void> resume(JobId id, Step& step);
  base::Result<void> set_stopped(JobId id, bool is_stopped, Step& step);
  base::Result<void> hold(JobId id, Step& step);
  base::Result<void> release(JobId id, Step& step);
  base::Result<void> set_weight(JobId id, std::uint32_t weight, Step& step);
  base::Result<void> set_priority(JobId id, std::int32_t priority, Step& step);
  // Checks whether change() would be accepted now. Errors: one line that does not name the job,
  // except for NotFound and WrongState.
  [[nodiscard]] base::Result<void> check_change(JobId id, const base::ResourceRequest& request,
                                                TimePoint now) const;
  base::Result<void> change(JobId id, const base::ResourceRequest& request, Step& step);
  base::Result<void> requeue(JobId id, std::string reason, Step& step);
  base::Result<void> end_attempt(JobId id, Step& step);
  // Sends the signal that its submission requested before its limit.
  void warn(Job& job, Step& step);

 private:
  // Returns the job if check() accepts the request.
  base::Result<Job*> checked(JobId id, JobRequest request, std::int64_t number = 0);
  void try_new(Job& job, Step& step);
  void send_signal(const Job& job, int signal, Step& step);
  [[nodiscard]] base::Result<void> check_requeue(const Job& job) const;
  [[nodiscard]] base::Result<void> check_placed(const Job& job, const base::ResourceRequest& wanted,
                                                TimePoint now) const;

  Parts p_;
};

}  // namespace score::gang
