#pragma once
// Meetings serves barrier mode: the nodes of an attempt report when they have brought it to a
// meeting, and each is sent MetAll when all have.

#include "gang/state/tables.hpp"

#include <array>
#include <map>
#include <vector>

namespace score::gang {

class Meetings {
 public:
  explicit Meetings(const NodeTable& nodes) : nodes_(nodes) {}

  // A member of the job has come. Returns false if it is too late and the others have continued
  // without it.
  bool came(const Job& job, std::size_t member, const base::MeetingReached& reached, Step& step);
  // A member is no longer waited for: the meetings that are complete without it are held.
  void hold_complete(const Job& job, Step& step);

  void forget(AttemptId attempt) { rank_barriers_.erase(attempt); }

 private:
  // RankBarrier holds the members that have come to the newest boundary that was reported.
  struct RankBarrier {
    TimePoint boundary{};
    std::vector<bool> there;  // [member]; empty: all have met
  };

  const NodeTable& nodes_;
  std::map<AttemptId, std::array<RankBarrier, base::kMeetings>> rank_barriers_;
};

}  // namespace score::gang
