// Barrier mode: the nodes of an attempt say when they have brought it to a meeting, and are told
// when all have. That is all the head does: a node that does not come keeps its own job waiting,
// and nobody else; the nodes give up by themselves (scored/node/switch_follower). Who has no link
// to the head switches by the clock and is not waited for. Boundaries are named by their cluster
// time, for nodes of one job may follow timetables of different epochs. It is tested by
// meetings_test.cpp.
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

void Cluster::Impl::meeting_reached(Job& job, std::size_t member,
                                    const base::MeetingReached& reached, Actions& out) {
  Gathering& gathering = job.gatherings[static_cast<std::size_t>(reached.meeting)];
  const Duration later = reached.boundary - gathering.boundary;
  if (later < -base::kSameBoundary) {  // the others have gone on without it
    ++counters.stale_reports;
    return;
  }
  if (later > base::kSameBoundary) {
    gathering.boundary = reached.boundary;
    gathering.there.assign(job.members.size(), false);
  }
  if (gathering.there.empty()) return;  // said twice
  gathering.there[member] = true;
  hold_meetings(job, out);
}

void Cluster::Impl::hold_meetings(Job& job, Actions& out) const {
  for (std::size_t meeting = 0; meeting < job.gatherings.size(); ++meeting) {
    Gathering& gathering = job.gatherings[meeting];
    bool all = !gathering.there.empty();
    for (std::size_t m = 0; all && m < job.members.size(); ++m) {
      all = job.members[m] == Member::Gone || gathering.there[m] ||
            !nodes[job.cells.nodes[m]].connected;
    }
    if (!all) continue;
    gathering.there.clear();
    const base::MetAll met{job.attempt(), static_cast<base::Meeting>(meeting), gathering.boundary};
    for (std::size_t m = 0; m < job.members.size(); ++m) {
      if (job.members[m] != Member::Gone) send(job.cells.nodes[m], met, out);
    }
  }
}

}  // namespace score::gang
