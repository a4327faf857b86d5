#pragma once
// Defines what commands and the dashboard show of nodes, jobs and the matrix.

#include "gang/lifecycle/ending.hpp"
#include "gang/schedule/placer.hpp"
#include "gang/schedule/publisher.hpp"
#include "gang/state/tables.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::gang {

struct NodeView {
  NodeId id{0};
  base::NodeInfo info;
  NodeState state = NodeState::Unknown;
  bool drained = false;
  std::string drain_reason;
  std::string down_reason;
  base::Bytes memory_reserved{0};
  std::vector<JobId> jobs;
  std::vector<base::GenericResource> generic_used{};  // units that jobs have
  std::string reservation{};                          // the one in force; empty: none
  base::Bytes scratch_reserved{0};
  std::string leaf_switch{};  // that the node is connected to; empty: none is configured
};

struct JobView {
  JobId id{0};
  UserId user{0};
  AttemptId attempt{0};  // value 0 until placed
  JobState state = JobState::Pending;
  base::ResourceRequest request;
  std::vector<NodeId> nodes;                 // [node index]; empty until placed
  std::vector<std::uint32_t> tasks_on_node;  // [node index]
  std::optional<SlotIndex> slot;             // home row
  std::uint32_t rows_used = 0;               // home row and those won by unification
  double share = 0;                          // fraction of time that it is scheduled now, 0 ... 1
  Duration scheduled{0};  // time that its gang was scheduled so far, by the timetable
  Duration filled{0};     // processor time used at idle priority, on the nodes where it has ended
  base::Usage usage{};    // of its tasks and steps, where they have ended
  base::Usage steps_usage{};  // of its steps that have ended
  std::optional<TimePoint> submitted, started, ended;
  // All reasons why it waits or gets no slices; or how it ended, the cause first.
  std::vector<std::string> reasons;
  std::vector<std::string> waits;  // while it is idle or deadlocked: see wait_lines()
  int exit_code = 0;  // highest of tasks, 128+signal, 124 limit, 125 error, 126/127 launch
  std::vector<base::TaskExit> exits;
  std::optional<JobState> ending;  // while Completing: the final state it will reach
  std::string limit;               // "time limit 3.0s reached"; empty: no limit was reached
  bool keep_going = false;
  JobActivity activity = JobActivity::Busy;
  std::uint32_t suspicion = 0;       // number for Cluster::confirm_deadlock(); 0: none
  bool background = false;           // idle, and out of the timetable in favour of other jobs
  std::uint32_t restarts = 0;        // how often it was requeued
  std::uint32_t asked_restarts = 0;  // of these: requested by a user
  std::uint32_t relaunches = 0;      // how often its launch was retried
  bool is_untried = false;           // while Completing: no task ran, and it will be launched again
  std::string lost;                  // reason of the last requeue
  std::vector<std::vector<std::uint32_t>> cores;       // [node index]; empty until placed
  std::vector<std::vector<base::GenericShare>> units;  // [node index]; empty: none
  std::uint32_t tasks_per_core = 1;                    // > 1: so many tasks share the cores of one
  std::optional<TimePoint> expected_start{};  // of a plan that would wait; nullopt if unknown
  Residence residence = Residence::InMemory;
  base::Bytes in_swap{0};                 // of its memory, now
  base::Bytes paged_out{0}, paged_in{0};  // of this attempt
  Duration paging{0};                     // in which this was done
  Duration parked{0};                     // without its memory, in this attempt
};

// A SliceView shows one slice of the current cycle.
struct SliceView {
  SlotIndex slot{0};
  Duration length{0};
  std::vector<JobId> jobs;
};

struct MatrixView {
  Epoch epoch{0};
  Duration quantum{0};
  Duration cycle{0};
  std::vector<SliceView> slices;
  std::optional<TimePoint> start{};  // start of a cycle; the slices repeat from here
};

// Shown names the parts of the scheduler that the views read.
struct Shown {
  const Tables& tables;
  const Placer& placer;
  const Publisher& publisher;
  const Ending& ending;
};

JobView view_of(const Shown& shown, const Job& job, TimePoint now);
NodeView view_of(const Shown& shown, NodeIndex node);
MatrixView matrix_view(const Shown& shown);
// Returns what a submission of the request would return now, including its error.
base::Result<JobView> plan_view(const Shown& shown, const base::ResourceRequest& request,
                                UserId user);

}  // namespace score::gang
