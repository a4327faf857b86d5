#pragma once
// Launching starts a job on all its nodes or on none. Every node prepares; when all have prepared,
// the job enters the timetable and all get StartTasks. One refusal or one missing answer ends the
// launch everywhere.

#include "gang/lifecycle/ending.hpp"
#include "gang/lifecycle/idle_jobs.hpp"

#include <set>

namespace score::gang {

class Launching {
 public:
  Launching(Tables& tables, const Publisher& publisher, Ending& ending, IdleJobs& idle)
      : tables_(tables), publisher_(publisher), ending_(ending), idle_(idle) {}

  // Starts a new attempt of a job that has just been placed.
  void launch(Job& job, Step& step);
  // A node has lost its preparation, or does not report it, so it is asked again.
  void ask_again(Job& job, std::size_t member, Step& step);
  void prepared(Job& job, std::size_t member, Step& step);
  // The timetable now holds every active job, so the prepared ones get StartTasks.
  void start_due(Step& step);

  // Returns true if every node has prepared; the job gets StartTasks with the next timetable.
  [[nodiscard]] bool is_start_due(JobId job) const { return start_due_.contains(job); }

  void start(Job& job, std::size_t member, Step& step);
  // Records that the tasks of the member exist.
  void began(Job& job, std::size_t member, Step& step);

  // ---- deadlines
  void launch_overdue(Job& job, Step& step);
  void begin_overdue(Job& job, Step& step);

 private:
  void prepare(const Job& job, std::size_t member, Step& step) const;
  void start_all(Job& job, Step& step);
  [[nodiscard]] std::vector<std::uint32_t> tasks_of(const Job& job) const;
  [[nodiscard]] std::vector<base::GenericShare> units_of(const Job& job, NodeIndex node) const;
  template <typename Members>
  [[nodiscard]] std::string names_of(const Job& job, const Members& members) const;

  Tables& tables_;
  const Publisher& publisher_;
  Ending& ending_;
  IdleJobs& idle_;
  std::set<JobId> start_due_;
};

}  // namespace score::gang
