#pragma once
// JobOutcome records how an attempt ends: the exits of its tasks, the state that was decided, the
// exit code, and the failure that explains it best.

#include "base/exit_codes.hpp"
#include "base/model/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::gang {

// Returns 128 + signal, or the code of exit().
int code_of(const base::TaskExit& exit);

// A TaskFailure is a task's failure or its call of abort.
struct TaskFailure {
  std::string reason;
  int exit_code = 0;
  base::TimePoint at{};  // cluster time; 0: not known
  bool is_loss = false;  // vanished without a call of abort: its peers fail because of it
};

class JobOutcome {
 public:
  // Starts a new attempt with these ranks, [rank] -> member. It forgets everything about the
  // attempt before.
  void expect(std::vector<std::uint32_t> member_of_rank);
  // Restores the values from the database of a restarted head.
  void restore(std::optional<base::JobState> ending, int exit_code,
               std::vector<std::string> reasons);

  // ---- what tasks do
  enum class Recorded : std::uint8_t { New, Known, Impossible };
  Recorded record(std::size_t member, const base::TaskExit& exit);

  [[nodiscard]] bool has_all_exits_of(std::size_t member) const;
  [[nodiscard]] std::vector<base::TaskExit> exits() const;  // ascending by rank

  // Holds the failed exit of the lowest rank, its member, and the number of failed tasks.
  struct Failed {
    std::size_t member = 0;
    base::TaskExit exit;
    std::size_t count = 0;
  };

  [[nodiscard]] std::optional<Failed> failed() const;

  // ---- the end
  // Decides the final state that the job will reach; only the first cause counts. An empty reason
  // is left out.
  void decide(base::JobState final_state, std::string reason, int exit_code);
  // Works like decide(Failed), for a failure that a better explanation may replace.
  void decide(TaskFailure failure);
  // Takes over the failure if it explains the end better. The end must be decided.
  void explain(TaskFailure failure);
  // Records that a node is lost with its tasks, and was already lost at `since`: a task's failure
  // after that was a consequence. Returns true if the end has changed.
  bool blame_loss(const std::string& reason, base::TimePoint since);
  // Records that the kernel has killed processes of the attempt because memory was exhausted. The
  // job ends because of it, whatever the tasks return after that. Returns true if the end has
  // changed.
  bool blame_memory(const std::string& reason);
  // Decides the end when all tasks have ended by themselves and nothing else has decided it.
  // `failures` describes the tasks that failed while the job kept going; it may be empty.
  void decide_by_exits(std::string failures);
  // Ends a job for this reason although it was to be requeued; the earlier reasons stay after it.
  void cancel_requeue(base::JobState final_state, const std::string& reason, int exit_code);

  [[nodiscard]] std::optional<base::JobState> ending() const { return ending_; }

  [[nodiscard]] int exit_code() const { return exit_code_; }

  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

  // Returns the final state when nothing of the job is left; ending() is then empty.
  base::JobState close();

 private:
  struct Rank {
    std::size_t member = 0;
    std::optional<base::TaskExit> exit;
  };

  std::vector<Rank> ranks_;  // [rank]
  std::optional<base::JobState> ending_;
  int exit_code_ = 0;
  std::vector<std::string> reasons_;
  std::optional<TaskFailure> failure_;  // the one that reasons_ describes
  std::string memory_;                  // the reason of blame_memory(), before the end is decided
};

}  // namespace score::gang
