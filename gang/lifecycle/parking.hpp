#pragma once
// Parking decides whose memory is in swap. A suspended job is parked, and so are the jobs that have
// the memory for which a job of queue urgent waits, the youngest first. A parked job is in no row.
// Its memory is lent: to jobs of queue urgent, or that of a suspended job to every job, as
// ClusterConfig::memory_share says. Before the job runs again the memory is reserved for it, and
// its nodes read it back. With share = "always" jobs that do not fit together take turns in memory;
// see memory_turns.hpp. A node that is short of memory in spite of all this has its youngest job
// parked, until there is room for it again.
//
// What a node could not write to swap is not lent. A node that loses its link or a head that
// restarts loses nothing: a parked job that is continued reads its memory back as it uses it.

#include "gang/lifecycle/memory_turns.hpp"
#include "gang/schedule/placer.hpp"
#include "gang/state/tables.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::gang {

class Parking {
 public:
  Parking(Tables& tables, Placer& placer)
      : tables_(tables), placer_(placer), turns_(tables, placer) {}

  // Takes the report of a node of the job. One that does not fit is ignored. A report that the
  // memory of a job is out which the head did not park is from the time before the head restarted.
  void reported(Job& job, std::size_t member, const base::ParkReport& report, Step& step);
  // Takes the report of a node about its memory. One job leaves at a time, and one stays.
  void memory_reported(NodeIndex node, const base::MemoryReport& report, Step& step);
  // Repeats the requests that the node may have missed.
  void connected(NodeIndex node, Step& step);
  // Checks whether a suspended job may continue. Errors: TooLarge, one line for the user, if other
  // jobs have its memory.
  [[nodiscard]] base::Result<void> check_resume(const Job& job) const;

  // The tasks of a job exist on a node, so it may be parked from now on.
  void begun() { planned_.first = SIZE_MAX; }

  // Has the memory of a job that continues read back, if it is not there.
  void resumed(Job& job, Step& step);
  // Parks and returns jobs. It must precede Placer::place_waiting().
  void settle(Step& step);

  // Returns when settle() has something to do although nothing has happened.
  [[nodiscard]] std::optional<TimePoint> next_time() const { return turns_.next_time(); }

 private:
  void leave(Job& job, JobId for_job, Step& step);
  void read_ahead(const Job& job, const Job& leaving, Step& step) const;
  [[nodiscard]] std::optional<JobId> find_relief(NodeIndex node) const;
  [[nodiscard]] bool has_room_again(const Job& job) const;
  void return_relieved(Step& step);
  void come_back(Job& job, Step& step);
  void send(const Job& job, std::size_t member, bool out, Step& step) const;
  void send_all(const Job& job, bool out, Step& step) const;
  void answered(Job& job, Step& step);
  void take_out(Job& job, std::size_t member, const base::ParkReport& report);
  void serve(const Job& urgent, Step& step);
  [[nodiscard]] std::set<JobId> victims_for(const Job& urgent) const;
  [[nodiscard]] std::vector<JobId> victims_on(const Job& urgent, NodeIndex node) const;
  void return_unneeded(Step& step);
  [[nodiscard]] bool is_awaited(JobId urgent) const;
  [[nodiscard]] bool must_plan(TimePoint now);
  void take_turns(Step& step);

  Tables& tables_;
  Placer& placer_;
  MemoryTurns turns_;
  std::set<JobId> hopeless_;                        // waiting jobs for which parking made no room
  std::map<NodeIndex, base::MemoryReport> memory_;  // the newest of each node that has sent one
  // The queue when turns were last planned: its length, and its newest submission.
  std::pair<std::size_t, std::uint64_t> planned_{};
};

// Returns what is shown of a job whose memory is not there; empty for others.
[[nodiscard]] std::string parked_reason(const Job& job, TimePoint now);

// Returns which jobs leave memory for this one, and when; empty if none do.
[[nodiscard]] std::string turn_reason(const Job& job, TimePoint now);

}  // namespace score::gang
