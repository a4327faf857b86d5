#pragma once
// A Step is one call into the head's scheduler: it holds the time of the call and collects the
// actions that follow from it. Every part of the scheduler that acts takes the Step of the call
// that it serves.

#include "base/model/model.hpp"

#include <variant>
#include <vector>

namespace score::gang {

using base::AttemptId;
using base::Duration;
using base::Epoch;
using base::JobId;
using base::JobState;
using base::NodeId;
using base::SlotIndex;
using base::TimePoint;
using base::UserId;

// ---- actions: carried out by the shell, in order
// A JobChanged that comes before messages to nodes must be on disk before those are sent. A
// restarted head must know of every attempt that may run (Launching) and of every attempt that was
// sent StartTasks (Running).

struct SendToNode {
  NodeId node{0};
  base::HeadToNode message;  // PrepareTasks has an empty spec, which the shell fills in
};

// State, reason, placement or exit code has changed: the shell saves it and informs watchers. If a
// time limit was reached (JobView::limit), the shell ends the job like a cancelled one, with
// SIGTERM and a grace period. Then it calls cancel() with EndCause::TimeLimit.
struct JobChanged {
  JobId job{0};
};

struct NodeChanged {  // up, suspect, down, drained
  NodeId node{0};
};

using Action = std::variant<SendToNode, JobChanged, NodeChanged>;
using Actions = std::vector<Action>;

struct Step {
  TimePoint now{};
  Actions actions{};

  void job_changed(JobId job) { actions.emplace_back(JobChanged{job}); }

  void node_changed(NodeId node) { actions.emplace_back(NodeChanged{node}); }
};

}  // namespace score::gang
