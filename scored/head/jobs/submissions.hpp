#pragma once
// Submissions checks new jobs against the cluster and the user's limits, stores them, and passes
// them on to JobLife. A submission is answered when it is on disk, so no acknowledged job is lost.
// A repeated submission (with the same request id) gets the first one's answer.

#include "base/shares.hpp"
#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/hooks/submit_hook.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/waiting_jobs.hpp"
#include "scored/head/reservations/reservation_manager.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

// Checks that the numbers of tasks of the job's programs, and the rank that gets its input, fit the
// request.
[[nodiscard]] Status check_tasks(const wire::LaunchSpec& spec, const ResourceRequest& request,
                                 std::int64_t stdin_rank);

class Submissions {
 public:
  using Done = std::function<void(const Result<Logged<wire::Submitted>>&)>;

  struct Parts {  // all must outlive the object
    JobLife& life;
    const WaitingJobs& waiting;
    const FairShares& shares;
    const ReservationManager& reservations;
    SubmitHook& hook;
    const Notices& notices;
  };

  Submissions(HeadContext& head, Parts parts) : head_(head), parts_(parts) {}

  // The caller has checked the permission. The reply has no tag.
  void submit(const Peer& peer, wire::Submit&& message, Done done);
  // Returns what submit() would return now. Errors: those of submit().
  [[nodiscard]] Result<wire::Planned> plan(const Peer& peer, wire::Submit&& message);

  // Rejects submissions from now on, because the cluster is shutting down.
  void close() { is_closed_ = true; }

  // Must be called if the database is an old copy. Submissions are rejected until these nodes have
  // reported which jobs they know, or until the time `until`.
  void await(std::set<NodeId> nodes, TimePoint until);
  // The node says that it has been given job `last`. If that is proven, no new job gets this or a
  // smaller number.
  void saw(NodeId node, JobId last, bool is_proven);

  // Returns true if [limits] apply: not to operators, root and exempt users.
  [[nodiscard]] bool is_limited(const Peer& peer);

 private:
  using RequestKey = std::pair<UserId, RequestId>;

  struct Checked {
    AddJob add;
    ResourceRequest request;
  };

  Result<Checked> check(const Peer& peer, wire::Submit& message);
  [[nodiscard]] static Status check_kind(const wire::Submit& message,
                                         const ResourceRequest& request);
  [[nodiscard]] Status fill_step(const Peer& peer, wire::Submit& message, ResourceRequest& request);
  [[nodiscard]] Status check_acceptance(const Peer& peer, const wire::Submit& message,
                                        ResourceRequest& request);
  [[nodiscard]] Status check_bytes(const Peer& peer, Bytes added);
  [[nodiscard]] static Status check_array(wire::Submit& message);
  [[nodiscard]] AddJob make_job(const Peer& peer, wire::Submit& message) const;
  bool answer_repeated(const RequestKey& key, const Done& done);
  // Asks the site's hook, then checks the submission again, as it may change and time has passed.
  void ask_hook(const Peer& peer, wire::Submit&& message, const RequestKey& key, const Done& done);
  void answered_by_hook(const Peer& peer, const Result<SubmitAnswer>& answer,
                        wire::Submit&& message, const RequestKey& key, const Done& done);
  // Takes a place for a submission that is not on disk yet. Repetitions of it wait, too.
  void begin_storing(const RequestKey& key, const Done& done);
  // Gives the place back; returns all who wait for the submission.
  std::vector<Done> end_storing(const RequestKey& key, const Done& done);
  void store(Checked&& checked, const RequestKey& key, const Done& done);
  void stored(const Result<LogReceipt>& logged, AddJob&& add, const ResourceRequest& request,
              const std::vector<Done>& waiting);

  HeadContext& head_;
  Parts parts_;
  bool is_closed_ = false;
  std::set<NodeId> awaited_;
  TimePoint awaited_until_{};
  std::map<RequestKey, std::vector<Done>> storing_;     // not on disk yet
  ShareCounter<UserId> pending_{shares::kSubmissions};  // likewise
};

}  // namespace score::head
