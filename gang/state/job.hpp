#pragma once
// What the head knows of one job.

#include "base/lazy.hpp"
#include "gang/job/idleness.hpp"
#include "gang/job/members.hpp"
#include "gang/job/outcome.hpp"
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

// The order in which waiting jobs are tried: queue urgent first, then high, then priority, then
// rank, then age.
struct WaitKey {
  std::uint8_t queue = 2;  // 0: urgent, 1: high, 2: the others
  std::int64_t minus_priority = 0;
  std::int64_t rank = 0;     // see Gate; 0 without one
  std::uint64_t number = 0;  // of submission
  JobId job{0};

  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
};

// An allocation that has nothing on its nodes but the first: its tasks are its steps'. With a
// volume each node has a server of it.
inline bool is_bare(const base::ResourceRequest& request) {
  return request.allocation && request.scratch == base::Bytes{0};
}

struct Job {
  JobId id{0};
  UserId user{0};
  base::ResourceRequest request;
  Shape shape;
  JobState state = JobState::Pending;  // changed by JobTable alone
  std::uint64_t attempts = 0;          // number of the current one, from 1
  std::uint64_t newest_seen = 0;       // number of an attempt that a node knows, perhaps of a head
                                       // that died before it had stored it
  std::uint32_t restarts = 0;          // of them, after a lost node
  std::uint32_t relaunches = 0;        // of them, after a launch that a node could not carry out
  bool is_untried = false;             // ending before any task ran, by no fault of its own
  std::string lost;                    // why, the last time
  WaitKey wait;
  bool keep_going = false;
  bool is_stopping = false;     // see Cluster::let_end
  std::string limit;            // the time limit that was reached, for people; empty: none
  std::vector<bool> allowed;    // [node] by names and features; empty: all
  Lazy<std::set<JobId>> steps;  // of an allocation: those that have not ended

  // Written by Placer.
  bool placed = false;
  Footprint cells;
  std::vector<std::uint32_t> tasks_on_node;            // [member]
  RowId home{0};                                       // 0: none (overlay)
  std::vector<std::vector<base::GenericShare>> units;  // [member]; empty: none
  base::Bytes scratch{0};                              // on each of its nodes
  std::uint32_t boost = 1;                             // of its weight, by the policy and the gate

  // The attempt. A waiting job has none, and there may be many.
  Lazy<Members> members;
  Lazy<Idleness> idleness;
  Lazy<Outcome> outcome;
  Lazy<ScheduledTime> time;  // written by Publisher
  Duration filled{0};  // processor time that its tasks used at idle priority, where it has ended
  bool background = false;      // by the newest layout: idle, and others want its cores
  bool displaced = false;       // by the newest layout: a job of queue high has its cores
  bool shares_channel = false;  // another job on a node of it has the same network channel

  std::optional<TimePoint> submitted, started, ended;

  [[nodiscard]] AttemptId attempt() const { return base::make_attempt(id, attempts); }

  [[nodiscard]] bool overlay() const { return request.overlay; }

  // Runs in the cores of another job, whenever that one does.
  [[nodiscard]] bool is_step() const { return request.inside != JobId{0}; }

  // Has cells of its own in the matrix.
  [[nodiscard]] bool has_row() const { return !overlay() && !is_step(); }

  [[nodiscard]] bool is_exclusive() const {
    return request.queue == base::Queue::Exclusive && has_row();
  }

  // No job of another queue has slices on its cores while it is busy.
  [[nodiscard]] bool is_high() const {
    return (request.queue == base::Queue::High || request.queue == base::Queue::Urgent) &&
           has_row();
  }

  // May open rows beyond ClusterConfig::max_slots.
  [[nodiscard]] bool is_urgent() const { return request.queue == base::Queue::Urgent && has_row(); }

  // In the timetable: has cores, was started, was not suspended, has not ended.
  [[nodiscard]] bool is_active() const { return state == JobState::Running && !overlay(); }

  // Frozen when it is not its turn: the active and the suspended.
  [[nodiscard]] bool is_managed() const {
    return is_active() || (state == JobState::Suspended && !overlay());
  }

  // Busy, as far as is known, and in the timetable.
  void forget_activity() {
    idleness.edit().reset();
    background = displaced = false;
  }

  // The index of the node within the job; nullopt: it is not placed there.
  [[nodiscard]] std::optional<std::size_t> member_on(NodeIndex node) const {
    const auto found = std::lower_bound(cells.nodes.begin(), cells.nodes.end(), node);
    if (!placed || found == cells.nodes.end() || *found != node) return std::nullopt;
    return static_cast<std::size_t>(found - cells.nodes.begin());
  }
};

}  // namespace score::gang
