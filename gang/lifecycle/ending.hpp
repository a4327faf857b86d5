#pragma once
// Ending carries out a job's end. The first cause decides it, once; then every node gets KillTasks.
// When nothing of the job is left on any node, it is final or waits in the queue again.

#include "gang/lifecycle/meetings.hpp"
#include "gang/schedule/placer.hpp"
#include "gang/schedule/publisher.hpp"
#include "gang/state/tables.hpp"

#include <string>

namespace score::gang {

// An End holds the reason for which a job ends.
struct End {
  JobState state = JobState::Failed;  // final
  std::string reason;
  int exit_code = base::kExitError;
  Fault fault = Fault::Job;
};

class Ending {
 public:
  Ending(Tables& tables, Placer& placer, Publisher& publisher, Meetings& meetings)
      : tables_(tables), placer_(placer), publisher_(publisher), meetings_(meetings) {}

  // Ends the job; only the first end counts. A pending job is final at once.
  void end(Job& job, End end, Step& step);
  // Works like end(), and also stops the requeue of a job that is about to be requeued.
  void cancel(Job& job, End end, Step& step);

  // ---- what nodes report of an attempt
  void exited(Job& job, std::size_t member, const base::Exited& message, Step& step);
  // The node is lost with its tasks, and was already lost at `since` (epoch: not known); failures
  // after that were consequences.
  void lost_node(Job& job, const std::string& reason, base::TimePoint since, Step& step);
  void refused(Job& job, std::size_t member, const base::Refused& message, Step& step);
  void aborted(Job& job, std::size_t member, const base::AbortRequested& message, Step& step);
  // One task has ended.
  void task_ended(Job& job, std::size_t member, const base::TaskExit& exit, Step& step);

  // Ends the steps of a job whose end is decided.
  void end_steps(Job& job, Step& step);

  // The pause before a repeated launch is over.
  void pause_over(Job& job);
  // Returns true if no task of the attempt has run and the job will be launched again.
  [[nodiscard]] bool is_untried(const Job& job) const;

  // Returns whether one more attempt is possible: there are numbers for attempts, and nodes that
  // are large enough.
  [[nodiscard]] bool has_place(const Job& job) const;

  // Nothing of the attempt is left on the member, or the node is lost.
  void gone(Job& job, std::size_t member, Step& step);

 private:
  bool record(Job& job, std::size_t member, const base::TaskExit& exit);
  void out_of_memory(Job& job, const std::string& reason, const base::Exited& message, Step& step);
  void judge(Job& job, std::size_t member, const base::TaskExit& exit, Step& step);
  void blame(Job& job, TaskFailure failure, Step& step);
  void decide(Job& job, Step& step);
  void carry_out(Job& job, Step& step);
  void finish(Job& job, Step& step);
  void leave_allocation(const Job& job, Step& step);
  [[nodiscard]] Retry retry_of(const Job& job, bool has_run) const;
  void requeue(Job& job, Retry retry, Step& step);
  void clear_attempt(Job& job, Step& step);
  [[nodiscard]] const std::string& name_of(const Job& job, std::size_t member) const;
  [[nodiscard]] std::string failure_of(const Job& job, std::size_t member,
                                       const base::TaskExit& exit) const;
  [[nodiscard]] std::string failures_of(const Job& job) const;

  Tables& tables_;
  Placer& placer_;
  Publisher& publisher_;
  Meetings& meetings_;
};

}  // namespace score::gang
