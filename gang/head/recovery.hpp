#pragma once
// Recovery restores the jobs of the database after a restart of the head.

#include "gang/lifecycle/ending.hpp"

#include <vector>

namespace score::gang {

// RecoveredJob is the database's record of a job that has not ended.
struct RecoveredJob {
  JobId id{0};
  UserId user{0};
  base::ResourceRequest request;
  JobState state = JobState::Pending;  // not final
  AttemptId attempt{0};
  std::vector<NodeId> nodes;
  std::vector<std::vector<std::uint32_t>> cores;  // [node index]
  std::vector<std::uint32_t> tasks_on_node;
  std::vector<std::vector<base::GenericShare>> units;  // [node index]; empty: none
  Duration scheduled{0};
  base::Usage steps_usage{};                    // what its nodes used themselves they report again
  std::optional<TimePoint> submitted, started;  // in this boot's monotonic time
  bool keep_going = false;
  std::uint32_t restarts = 0;
  std::uint32_t asked_restarts = 0;  // of these: those that a user requested
  bool is_requeued = false;          // a user requested one more, which is not done
  std::string lost{};                // reason of that request
  std::optional<JobState> ending;    // as in JobView, with its cause:
  int exit_code = 0;
  std::vector<std::string> reasons;
};

class Recovery {
 public:
  Recovery(Tables& tables, Placer& placer, Ending& ending)
      : tables_(tables), placer_(placer), ending_(ending) {}

  // Recovers the jobs; it skips known and final ones. Afterwards the head waits up to rejoin_grace
  // for the nodes of the others (NodeTable::is_awaiting).
  void recover(const std::vector<RecoveredJob>& jobs, Step& step);

 private:
  void recover_one(const RecoveredJob& recovered, Step& step);
  bool recover_inside(Job& job, Step& step);
  void recover_waiting(Job& job, const RecoveredJob& recovered, Step& step);
  void recover_placed(Job& job, const RecoveredJob& recovered, Step& step);
  bool fill_cells(Job& job, const RecoveredJob& recovered) const;

  Tables& tables_;
  Placer& placer_;
  Ending& ending_;
};

}  // namespace score::gang
