#pragma once
// How an attempt ends: the exits of its tasks, the state that was decided, the exit code, and the
// failure that explains it best.

#include "base/exit_codes.hpp"
#include "base/model/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::gang {

// 128 + signal, or the code of exit().
int code_of(const base::TaskExit& exit);

// A task's failure, or its call of abort.
struct Failure {
  std::string reason;
  int exit_code = 0;
  base::TimePoint at{};  // cluster time; 0: not known
  bool is_loss = false;  // the task vanished without a call of abort: its peers fail because of it
};

class Outcome {
 public:
  // A new attempt with these ranks, [rank] -> member. Forgets everything of the one before.
  void expect(std::vector<std::uint32_t> member_of_rank);
  // From the database of a restarted head.
  void restore(std::optional<base::JobState> ending, int exit_code,
               std::vector<std::string> reasons);

  // ---- what tasks do
  enum class Recorded : std::uint8_t { New, Known, Impossible };
  Recorded record(std::size_t member, const base::TaskExit& exit);

  [[nodiscard]] bool has_all_exits_of(std::size_t member) const;
  [[nodiscard]] std::vector<base::TaskExit> exits() const;  // ascending by rank

  // The failed exit of the lowest rank, its member, and how many failed in all.
  struct Failed {
    std::size_t member = 0;
    base::TaskExit exit;
    std::size_t count = 0;
  };

  [[nodiscard]] std::optional<Failed> failed() const;

  // ---- the end
  // The first cause counts: the final state that the job will reach. An empty reason is none.
  void decide(base::JobState final_state, std::string reason, int exit_code);
  // As decide(Failed), for a failure that a better explanation may replace.
  void decide(Failure failure);
  // Once the end is decided: takes over the failure if it explains the end better.
  void explain(Failure failure);
  // A node is lost with its tasks, and was already at `since`: a task's failure after that was its
  // consequence. True: the end has changed.
  bool blame_loss(const std::string& reason, base::TimePoint since);
  // The kernel has killed processes of the attempt because memory was exhausted. Whatever the tasks
  // return after that, the job ends because of it. True: the end has changed.
  bool blame_memory(const std::string& reason);
  // All tasks have ended by themselves, and nothing has decided the end. failures: of tasks that
  // failed while the job kept going; may be empty.
  void decide_by_exits(std::string failures);
  // A requeued job ends after all, because of this; the earlier reasons stay behind it.
  void cancel_requeue(base::JobState final_state, const std::string& reason, int exit_code);

  [[nodiscard]] std::optional<base::JobState> ending() const { return ending_; }

  [[nodiscard]] int exit_code() const { return exit_code_; }

  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

  // Nothing of the job is left: the final state, which ending() no longer is.
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
  std::optional<Failure> failure_;  // that reasons_ is about
  std::string memory_;              // the reason of blame_memory(), before the end is decided
};

}  // namespace score::gang
