#pragma once
// TaskStarter sends the messages of gang::Cluster to nodes. It fills in the specification of the
// tasks, and holds back messages that must not leave before the state behind them is on disk.

#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/streams/job_streams.hpp"

#include <string>
#include <vector>

namespace score::head {

class TaskStarter {
 public:
  // The parameters must outlive the object.
  TaskStarter(HeadContext& head, JobStreams& streams) : head_(head), streams_(streams) {}

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

  HeadContext& head_;
  JobStreams& streams_;
  std::vector<HeldMessage> held_;
  AttemptId spec_of_;  // attempt of spec_, which is kept for its other nodes
  std::string spec_;
};

}  // namespace score::head
