#pragma once
// New jobs: checked against the cluster and the user's limits, stored, and then handed to JobLife.
// A submission is answered when it is on disk, so that no acknowledged job is lost; one that is
// repeated (the same request id) gets the first one's answer.

#include "proto/client.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/share_desk.hpp"
#include "scored/head/jobs/waiting_jobs.hpp"
#include "scored/head/reservations/reservation_desk.hpp"
#include "scored/head/store/commit_log.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class Submissions {
 public:
  using Done = std::function<void(const Result<wire::Submitted>&)>;

  struct Parts {  // all outlive it
    ClusterRunner& runner;
    const HeadConfig& config;
    JobTable& jobs;
    JobLife& life;
    NodeLinks& links;
    Users& users;
    StoreReader& reader;
    CommitLog& commits;
    const WaitingJobs& waiting;
    const ShareDesk& shares;
    const ReservationDesk& reservations;
  };

  // last: the largest number ever given to a job.
  Submissions(Parts parts, JobId last) : parts_(parts), last_(last) {}

  // The caller has checked the permission. The reply has no tag.
  void submit(const Peer& peer, wire::Submit&& message, Done done);
  // What submit() would come to. Errors: its refusals.
  [[nodiscard]] Result<wire::Planned> plan(const Peer& peer, wire::Submit&& message);

  // For a job that is stored next.
  [[nodiscard]] JobId take_number() { return last_ = JobId(last_.value() + 1); }

  // From now on submissions are refused: the cluster is shutting down.
  void close() { is_closed_ = true; }

  // The database is an old copy: submissions are refused until these nodes have said which jobs
  // they know, or until then.
  void await(std::set<NodeId> nodes, TimePoint until);
  // The node has been given this job: no later one gets its number or a smaller one.
  void saw(NodeId node, JobId last);

  // Whether [limits] apply: not to operators, root and exempt users.
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
  void store(AddJob&& add, const ResourceRequest& request, const Done& done);
  void stored(const Status& status, AddJob&& add, const ResourceRequest& request,
              const std::vector<Done>& waiting);

  Parts parts_;
  JobId last_;
  bool is_closed_ = false;
  std::set<NodeId> awaited_;
  TimePoint awaited_until_{};
  std::map<RequestKey, std::vector<Done>> storing_;  // not on disk yet
};

}  // namespace score::head
