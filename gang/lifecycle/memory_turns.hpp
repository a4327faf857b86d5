#pragma once
// MemoryTurns decides which jobs have memory when those with a place need more than there is. The
// jobs in memory take turns at the quantum as ever. The others wait, parked or not started yet, and
// each gets memory in the order in which it began to wait: the jobs that have had it longest leave.
// A turn in memory is so long that paging takes at most ClusterConfig::memory_cost of it, by the
// rates that the nodes have measured, and at most memory_turn_max.

#include "gang/lifecycle/page_rates.hpp"
#include "gang/schedule/placer.hpp"
#include "gang/state/tables.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace score::gang {

struct MemoryPlan {
  std::vector<JobId> back;                   // parked jobs whose memory is free
  std::vector<std::pair<JobId, JobId>> out;  // a job that leaves, and the one that it leaves for
};

class MemoryTurns {
 public:
  MemoryTurns(Tables& tables, Placer& placer) : tables_(tables), placer_(placer) {}

  // Takes a node's measurement of one job.
  void measured(NodeIndex node, const base::ParkReport& report);
  // The memory of the job has begun to leave, or is there again.
  void exchanged(const Job& job, TimePoint now);

  // Decides for these parked jobs and the waiting ones. What waiting jobs may have now is granted
  // to them (Placer::grant()). The caller carries out the rest at once.
  [[nodiscard]] MemoryPlan plan(const std::vector<JobId>& parked, TimePoint now);
  // Forgets what was granted and planned.
  void clear();

  // Returns the time at which the next turn ends that a job waits for.
  [[nodiscard]] std::optional<TimePoint> next_time() const { return next_; }

 private:
  [[nodiscard]] std::vector<JobId> claimants(const std::vector<JobId>& parked) const;

  Tables& tables_;
  Placer& placer_;
  PageRates rates_;
  std::map<NodeIndex, TimePoint> exchanged_;  // when memory was last exchanged there
  std::optional<TimePoint> next_;
  std::vector<JobId> told_;  // jobs with Parked::awaits
};

}  // namespace score::gang
