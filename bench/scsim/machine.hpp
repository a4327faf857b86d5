#pragma once
// Simulates the scheduler of gang::Cluster without its nodes: the same queue, policies, matrix,
// layout and turns, but jobs start when they are placed and no message is sent. So a simulation of
// a million jobs takes minutes, and decides as a real head would.

#include "gang/lifecycle/parking.hpp"
#include "gang/schedule/layout.hpp"
#include "gang/schedule/placer.hpp"
#include "gang/schedule/turns.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace score::scsim {

using base::Duration;
using base::JobId;
using base::TimePoint;

// Jobs that do not fit in memory together take turns in it; see gang/lifecycle/memory_turns.hpp.
struct MemoryOptions {
  double page_rate = 0;  // bytes per second of each node's swap; 0: memory is not shared
  std::uint32_t cost_percent = 10;
  Duration turn_max = std::chrono::minutes{10};
};

struct MachineOptions {
  gang::Placement placement = gang::Placement::Matrix;
  std::uint32_t nodes = 128;  // of one core each
  std::uint32_t slots = base::limits::kDefaultSlots;
  Duration quantum = base::limits::kDefaultQuantum;
  Duration long_limit{0};
  Duration long_shared{0};
  std::uint32_t long_slots = 1;
  std::uint32_t long_weight = 48;
  Duration long_early{0};
  Duration young_time{0};
  std::uint32_t switch_nodes = 0;  // nodes of a leaf switch; 0: the placer knows no switches
  MemoryOptions memory{};
};

struct MachineJob {
  JobId id{0};
  std::uint32_t user = 0;
  std::uint32_t nodes = 1;
  base::Bytes memory{0};
  Duration limit{0};  // the user's estimate
};

inline constexpr base::Bytes kNodeMemory{std::uint64_t{64} << 30};

class Machine {
 public:
  explicit Machine(const MachineOptions& options);

  // A placed job enters the timetable with prepared() if this is true, as on real nodes. By default
  // it enters at once.
  void set_start_takes_time(bool takes_time) { start_takes_time_ = takes_time; }

  // Queues or places a job; see settle().
  void submit(const MachineJob& job, TimePoint now);
  // Puts the job into the timetable, as when its nodes have prepared it.
  void prepared(JobId id, TimePoint now);
  // Ends the job.
  void finish(JobId id, TimePoint now);
  void set_idle(JobId id, bool idle, TimePoint now);
  // The job has been scheduled for as long as a job is young.
  void age(JobId id);

  // Returns when nodes have written or read memory, or a turn in memory ends; nullopt if nothing
  // is due.
  [[nodiscard]] std::optional<TimePoint> next_paging() const;
  // Carries out what is due.
  void page(TimePoint now);

  // Ends the changes of one instant: places waiting jobs and lays out the turns. Returns the jobs
  // that have been placed.
  std::vector<JobId> settle(TimePoint now);

  // ---- running jobs

  // Returns how long the job has been scheduled.
  [[nodiscard]] Duration scheduled(JobId id, TimePoint now) const;
  // Returns a time that is not after the one at which the job will have been scheduled for
  // `missing` more. If that one is near, returns it itself. Returns nullopt if the job has no turn.
  [[nodiscard]] std::optional<TimePoint> look_again(JobId id, Duration missing,
                                                    TimePoint now) const;
  // Returns the job's share of the time, 0 ... 1.
  [[nodiscard]] double share(JobId id) const;

  // ---- views
  [[nodiscard]] const gang::Job& job(JobId id) const { return tables_.jobs.at(id); }

  // Returns true if enough nodes have the job's memory free.
  [[nodiscard]] bool has_memory(const MachineJob& job) const;

  [[nodiscard]] std::size_t waiting() const { return placer_.waiting().size(); }

  [[nodiscard]] std::size_t rows() const { return placer_.matrix().row_count(); }

  [[nodiscard]] std::uint64_t layouts() const { return layouts_; }

  // Returns the gang switches so far: the boundaries of slices where rows take turns.
  [[nodiscard]] std::uint64_t switches(TimePoint now) const;

  [[nodiscard]] const std::set<JobId>& active() const { return tables_.jobs.active(); }

  [[nodiscard]] base::Bytes memory_high() const { return memory_high_; }

  // Returns how often a node has written memory of a job to swap or read it back.
  [[nodiscard]] std::uint64_t pagings() const { return pagings_; }

  [[nodiscard]] base::Result<void> check() const;

 private:
  void start(gang::Job& job);
  void enter_timetable(gang::Job& job);
  void take_turns(TimePoint now);
  void take_orders();
  [[nodiscard]] TimePoint start_of(const gang::CycleLayout& layout, TimePoint now) const;

  gang::Tables tables_;
  gang::Placer placer_;
  gang::Parking parking_;
  double page_rate_ = 0;
  std::multimap<TimePoint, std::pair<gang::NodeIndex, base::ParkTasks>> paging_;  // by their ends
  std::uint64_t pagings_ = 0;
  gang::Turns turns_;
  gang::Step step_;
  std::vector<JobId> started_;
  bool start_takes_time_ = false;
  std::uint64_t layouts_ = 0;
  std::uint64_t switches_ = 0;
  base::Bytes memory_high_{0};
};

}  // namespace score::scsim
