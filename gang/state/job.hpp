#pragma once
// Job holds all data that the head has about one job.

#include "base/lazy.hpp"
#include "gang/job/idleness.hpp"
#include "gang/job/members.hpp"
#include "gang/job/outcome.hpp"
#include "gang/job/parked.hpp"
#include "gang/job/retry.hpp"
#include "gang/job/scheduled_time.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/state/step.hpp"

#include <algorithm>
#include <compare>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::gang {

// Waiting jobs are tried in this order: by queue (urgent, high, others), then by the order of their
// partition, then by priority, then by rank, then by age.
struct WaitKey {
  std::uint8_t queue = 2;        // 0: urgent, 1: high, 2: the others
  std::int64_t minus_order = 0;  // see Partition::order
  std::int64_t minus_priority = 0;
  std::int64_t rank = 0;     // see Gate; 0 without one
  std::uint64_t number = 0;  // of the submission
  JobId job{0};

  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
};

// Returns true for an allocation that runs nothing on its nodes except the first: its tasks are
// those of its steps. An allocation with a volume runs a server on each node.
inline bool is_bare(const base::ResourceRequest& request) {
  return request.allocation && request.scratch == base::Bytes{0};
}

struct Job {
  JobId id{0};
  UserId user{0};
  base::ResourceRequest request;
  Shape shape;
  JobState state = JobState::Pending;  // changed only by JobTable
  std::uint64_t attempts = 0;          // number of the current one, from 1
  std::uint64_t newest_seen = 0;  // greatest number that a node reported, perhaps of a crashed head
  std::uint32_t restarts = 0;     // requeues of an attempt whose tasks ran
  std::uint32_t relaunches = 0;   // launches repeated because a node could not carry one out
  std::uint32_t asked_restarts = 0;  // of `restarts`: those that a user requested
  bool is_requeued = false;          // a user requested that it returns to the queue; see Ending
  bool is_warned = false;            // the attempt was sent the signal before its limit
  bool is_paused = false;            // in no queue before the next launch, which is a repeated one
  Fault fault = Fault::Job;          // for which the attempt ends
  std::string lost;                  // reason of the last requeue
  WaitKey wait;
  bool keep_going = false;
  bool is_stopping = false;     // see Cluster::let_end
  std::string limit;            // text of the time limit that was reached; empty: none
  std::vector<bool> allowed;    // [node] by names, features, partition; empty: all
  bool is_near = false;         // it waits for a place within request.switches leaf switches
  Lazy<std::set<JobId>> steps;  // of an allocation: the steps that have not ended

  // Placer writes these.
  bool placed = false;
  Footprint cells;
  std::vector<std::uint32_t> tasks_on_node;            // [member]
  RowId home{0};                                       // 0: none (overlay)
  std::vector<std::vector<base::GenericShare>> units;  // [member]; empty: none
  base::Bytes scratch{0};                              // on each of its nodes
  std::uint32_t boost = 1;       // factor of its weight, from the policy and the gate
  std::uint32_t gate_boost = 1;  // the part of it that is from the gate; a young job has only this

  // These describe the attempt. A waiting job has none, and there may be many waiting jobs.
  Lazy<Members> members;
  Lazy<Idleness> idleness;
  Lazy<JobOutcome> outcome;
  Lazy<ScheduledTime> time;  // written by Publisher
  Lazy<Parked> parked;       // written by Parking and Room
  Duration filled{0};  // processor time that its tasks used at idle priority, where it has ended
  base::Usage usage;   // of its tasks, where they have ended
  base::Usage steps_usage;      // of its steps that have ended
  bool background = false;      // by the newest layout: idle, and other jobs need its cores
  bool is_young = false;        // its scheduled time is below ClusterConfig::young_time
  bool displaced = false;       // by the newest layout: a job of queue high has its cores
  bool shares_channel = false;  // a different job on one of its nodes has the same network channel
  std::uint64_t stopped_attempt = 0;  // see is_stopped(); 0: none

  std::optional<TimePoint> submitted, started, ended;

  [[nodiscard]] AttemptId attempt() const { return base::make_attempt(id, attempts); }

  [[nodiscard]] bool overlay() const { return request.overlay; }

  // A step has no cores of its own: it uses those of a different job, whenever that job runs.
  [[nodiscard]] bool is_step() const { return request.inside != JobId{0}; }

  // Returns true if the job has cells of its own in the matrix.
  [[nodiscard]] bool has_row() const { return !overlay() && !is_step(); }

  [[nodiscard]] bool is_exclusive() const {
    return request.queue == base::Queue::Exclusive && has_row();
  }

  // While such a job is busy, no job of a lower queue has slices on its cores.
  [[nodiscard]] bool is_high() const {
    return (request.queue == base::Queue::High || request.queue == base::Queue::Urgent) &&
           has_row();
  }

  // An urgent job may open rows beyond ClusterConfig::max_slots.
  [[nodiscard]] bool is_urgent() const { return request.queue == base::Queue::Urgent && has_row(); }

  // Returns what it counts in the turns of its row.
  [[nodiscard]] std::uint32_t turn_weight() const {
    return request.weight * (is_young ? gate_boost : boost);
  }

  // An active job is in the timetable: it has cores, was started, is not suspended and has not
  // ended.
  [[nodiscard]] bool is_active() const { return state == JobState::Running && !overlay(); }

  // A managed job is frozen when it is not its turn: it is active or suspended.
  [[nodiscard]] bool is_managed() const {
    return is_active() || (state == JobState::Suspended && !overlay());
  }

  // Returns true if the job is kept out of all slices because somebody looks at its tasks. It ends
  // with the attempt, and a restarted head has forgotten it.
  [[nodiscard]] bool is_stopped() const {
    return stopped_attempt != 0 && stopped_attempt == attempts;
  }

  // The job counts as busy again and is in the timetable.
  void forget_activity() {
    idleness.edit().reset();
    background = displaced = false;
  }

  // Returns the index of the node within the job; nullopt if the job is not placed there.
  [[nodiscard]] std::optional<std::size_t> member_on(NodeIndex node) const {
    const auto found = std::lower_bound(cells.nodes.begin(), cells.nodes.end(), node);
    if (!placed || found == cells.nodes.end() || *found != node) return std::nullopt;
    return static_cast<std::size_t>(found - cells.nodes.begin());
  }
};

}  // namespace score::gang
