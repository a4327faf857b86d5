#pragma once
// Holds the settings and the counters of the head's scheduler.

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/model/settings.hpp"
#include "base/time.hpp"

#include <array>
#include <string>
#include <vector>

namespace score::gang {

// Placement selects how jobs share the nodes; see gang/schedule/policy.hpp. The head's
// configuration offers the first two; the simulator compares them with the others.
enum class Placement : std::uint8_t { Matrix, Dqt, Slurm, Fcfs, Easy, Conservative };

struct ClusterConfig {
  // Jobs up to this limit are short: if only such jobs take turns, they all end within minutes, so
  // their row is free again soon. A longer job can hold its row for hours.
  static constexpr base::Duration kDefaultLongLimit = std::chrono::minutes{5};
  static constexpr base::Duration kDefaultLongEarly = std::chrono::minutes{15};
  // Jobs with a longer limit leave one row in this many to others. Together with the jobs without a
  // limit they leave half of those rows to short ones: 2 and 1 of the default 8.
  static constexpr std::uint32_t kSlotsPerKeptRow = 4;

  static constexpr base::Duration kMinNodeTimeout = std::chrono::seconds{4};
  static_assert(base::limits::kSuspectAfter < kMinNodeTimeout);

  static constexpr base::Duration kMinDeadlockAfter = std::chrono::seconds{3};

  base::Duration quantum = base::limits::kDefaultQuantum;
  std::uint32_t max_slots = base::limits::kDefaultSlots;  // rows of the matrix
  // Additional rows, which only urgent jobs may open and use.
  std::uint32_t urgent_slots = base::limits::kDefaultUrgentSlots;
  bool switch_always = false;  // switch at every boundary, even between slices of the same jobs
  // A new timetable is sent this long ahead where something runs: epoch_lead, plus
  // epoch_lead_per_node for each node that gets it, at most most_epoch_lead.
  base::Duration epoch_lead = base::limits::kMinTimetableLead;
  base::Duration epoch_lead_per_node = std::chrono::microseconds{250};
  base::Duration most_epoch_lead = std::chrono::milliseconds{20};
  base::Duration idle_lead = std::chrono::milliseconds{2};         // the same where nothing runs
  base::Duration epoch_gap = std::chrono::milliseconds{5};         // faster changes share an epoch
  base::Duration launch_deadline = base::limits::kLaunchDeadline;  // until Prepared from every node
  base::Duration kill_deadline = std::chrono::seconds{5};  // until Exited; then the node is suspect
  base::Duration epilog_limit{0};  // added to it: a hook of the site runs on the node before Exited
  base::Duration suspect_after = base::limits::kSuspectAfter;  // without heartbeat: no new jobs
  base::Duration node_timeout = std::chrono::seconds{30};      // without heartbeat: its jobs end
  base::Duration reconnect_grace = base::limits::kReconnectGrace;  // its link broke: its jobs end
  base::Duration rejoin_grace = std::chrono::seconds{10};  // a restarted head waits for its nodes
  std::uint32_t max_requeues = 3;  // of a job after a lost node, and likewise of a launch
  base::Duration young_time{0};    // a job with less scheduled time is young; 0: none is
  bool idle_detection = true;      // idle jobs give their slices to others
  Placement placement = Placement::Matrix;
  // Jobs with a longer time limit are long and have rows of their own. Once one of them has to
  // wait, they run one after the other, and none delays the first in the queue. With 0 no job is
  // long.
  base::Duration long_limit{0};
  base::Duration long_early{0};    // those up to this limit start at once all the same
  base::Duration long_shared{0};   // before that, those up to this limit share nodes as others do
  std::uint32_t long_slots = 1;    // rows of long jobs that do not share
  std::uint32_t long_weight = 48;  // multiplies the weight of the lowest such row
  bool overcommit = true;          // tasks of a job share cores if there are too few
  bool fill = false;  // jobs use at idle priority what the current gang leaves; see gang/schedule
  std::vector<base::Queue> fill_queues = {base::Queue::High, base::Queue::Normal};  // may fill
  base::MemoryShare memory_share = base::MemoryShare::Never;  // see gang/lifecycle/parking.hpp
  std::vector<base::Queue> unparked_queues{};      // jobs of these queues are never parked
  std::vector<std::string> unparked_partitions{};  // likewise
  // Turns in memory with share = "always"; see gang/lifecycle/memory_turns.hpp.
  std::uint32_t memory_cost_percent = 10;  // the most that paging takes of a turn
  base::Duration memory_turn_max = std::chrono::minutes{10};
  base::Duration memory_idle_after{0};  // a job idle for so long leaves first; 0: like others
  bool names_nodes = false;  // each node of a job gets the list of its nodes, to meet directly
  bool can_fill = true;  // false with the barrier switch mode, in which nothing may run at a switch
  base::Duration unsettled_idle = std::chrono::seconds{1};  // idle although messages are in flight
  base::Duration deadlock_after = std::chrono::seconds{5};  // every task waits for messages
  bool confirms_deadlocks = false;  // the shell looks at the tasks: see Cluster::confirm_deadlock
};

// Gets or sets the member of a setting; see base/model/settings.hpp.
[[nodiscard]] base::SettingValue setting_of(const ClusterConfig& config, base::Setting setting);
void set_setting(ClusterConfig& config, base::Setting setting, base::SettingValue value);

struct ClusterCounters {
  std::uint64_t epochs = 0;         // timetables published
  std::uint64_t late_epochs = 0;    // reported late by a node
  std::uint64_t stale_reports = 0;  // about an attempt or node that is not, or no longer, ours
  std::uint64_t jobs_started = 0;
  std::array<std::uint64_t, base::kJobStateWords.size()> jobs_ended{};  // [final JobState]
  std::uint64_t idle_left = 0, idle_returned = 0;  // jobs that left the timetable and came back
  std::uint64_t deadlocks = 0;                     // jobs that were found deadlocked
  std::uint64_t early_yields = 0;  // slices that ended early because no job was left in them
};

}  // namespace score::gang
