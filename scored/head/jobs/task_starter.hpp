#pragma once
// TaskStarter sends the messages of gang::Cluster to nodes. It fills in the specification of the
// tasks, and holds back messages that must not leave before the state behind them is on disk.

#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/store/commit_log.hpp"
#include "scored/head/streams/job_streams.hpp"

#include <string>
#include <vector>

namespace score::head {

class TaskStarter {
 public:
  struct Parts {  // all must outlive the object
    ClusterRunner& runner;
    JobTable& jobs;
    JobStreams& streams;
    NodeLinks& links;
    StoreReader& reader;
    CommitLog& commits;
  };

  explicit TaskStarter(Parts parts) : parts_(parts) {}

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
  Result<std::string> spec_for(AttemptId attempt, Job& job, const gang::JobView& view);
  void stop_waiting_for_output(AttemptId attempt);
  void send_now(NodeId node, const HeadToNode& message);

  Parts parts_;
  std::vector<HeldMessage> held_;
  AttemptId spec_of_;  // attempt of spec_, which is kept for its other nodes
  std::string spec_;
};

}  // namespace score::head
