// A node that does not come delays only its own job; the nodes give up by themselves
// (scored/node/switch). A node without a link to the head switches by the clock and is not waited
// for. Boundaries are named by their cluster time, because nodes of one job may follow timetables
// of different epochs.
// This file is tested by lifecycle_test.cpp and gang/head/meetings_test.cpp.
#include "gang/lifecycle/meetings.hpp"

namespace score::gang {

bool Meetings::came(const Job& job, std::size_t member, const base::MeetingReached& reached,
                    Step& step) {
  auto& rank_barrier = rank_barriers_[job.attempt()][static_cast<std::size_t>(reached.meeting)];
  const Duration later = reached.boundary - rank_barrier.boundary;
  if (later < -base::kSameBoundary) return false;
  if (later > base::kSameBoundary) {
    rank_barrier.boundary = reached.boundary;
    rank_barrier.there.assign(job.members->count(), false);
  }
  if (rank_barrier.there.empty()) return true;  // a repeated report
  rank_barrier.there[member] = true;
  hold_complete(job, step);
  return true;
}

void Meetings::hold_complete(const Job& job, Step& step) {
  const auto found = rank_barriers_.find(job.attempt());
  if (found == rank_barriers_.end()) return;
  for (std::size_t meeting = 0; meeting < found->second.size(); ++meeting) {
    RankBarrier& rank_barrier = found->second[meeting];
    bool is_complete = !rank_barrier.there.empty();
    for (std::size_t m = 0; is_complete && m < job.members->count(); ++m) {
      is_complete = !job.members->has_tasks(m) || rank_barrier.there[m] ||
                    !nodes_[job.cells.nodes[m]].connected;
    }
    if (!is_complete) continue;
    rank_barrier.there.clear();
    const base::MetAll met{job.attempt(), static_cast<base::Meeting>(meeting),
                           rank_barrier.boundary};
    for (std::size_t m = 0; m < job.members->count(); ++m) {
      if (job.members->has_tasks(m)) nodes_.send(job.cells.nodes[m], met, step);
    }
  }
}

}  // namespace score::gang
