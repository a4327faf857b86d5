#pragma once
// TaskStarter sends the messages of gang::Cluster to nodes. It fills in the specification of the
// tasks, and holds back messages that must not leave before the state behind them is on disk.

#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/attempt_secrets.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/streams/job_streams.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class TaskStarter {
 public:
  // The parameters must outlive the object.
  TaskStarter(HeadContext& head, JobStreams& streams, const AttemptSecrets& secrets)
      : head_(head), streams_(streams), secrets_(secrets) {}

  // Sets the function that proves to a node that a job's number was given out.
  void prove_jobs(std::function<std::string(JobId)> prove) { prove_ = std::move(prove); }

  // Sets the function that returns the last set of images of a job, which a new attempt restores;
  // empty: the job starts from its beginning.
  void continue_from(std::function<std::string(JobId)> last_set) {
    last_set_ = std::move(last_set);
  }

  // Sends a message; StartTasks and ForgetTasks wait for release_held().
  void send(NodeId node, HeadToNode&& message);
  // Sends held messages when everything that was stored before this call is on disk.
  void release_held();

 private:
  struct HeldMessage {
    NodeId node;
    HeadToNode message;
  };

  void prepare(NodeId node, PrepareTasks&& message);
  static void describe_allocation(const Job& job, const gang::JobView& view,
                                  wire::LaunchSpec& spec);
  void describe_for_slurm(const Job& job, const gang::JobView& view, wire::LaunchSpec& spec);
  Result<std::string> spec_for(AttemptId attempt, Job& job, const gang::JobView& view);
  void stop_waiting_for_output(AttemptId attempt);
  void send_now(NodeId node, const HeadToNode& message);
  void send_proven(NodeId node, PrepareTasks&& message);

  HeadContext& head_;
  JobStreams& streams_;
  const AttemptSecrets& secrets_;
  std::vector<HeldMessage> held_;
  AttemptId spec_of_;  // attempt of spec_, which is kept for its other nodes
  std::string spec_;
  std::function<std::string(JobId)> prove_;
  std::string proof_;  // of the job of spec_
  std::function<std::string(JobId)> last_set_;
};

}  // namespace score::head
