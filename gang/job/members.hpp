#pragma once
// Members records the progress of each node of an attempt. A member is a node of the attempt,
// identified by its index within the job.

#include "base/time.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace score::gang {

enum class Member : std::uint8_t {
  Asked,     // PrepareTasks was sent
  Prepared,  // ready to start at once
  Started,   // StartTasks was sent
  Gone,      // nothing of the attempt runs there, or the node is lost
  Bare,      // an allocation holds cores there, for steps; nothing of the attempt itself runs there
};

class Members {
 public:
  void ask_all(std::size_t count);
  // After a restart of the head all members count as sent StartTasks, and none has confirmed it.
  void assume_started(std::size_t count);
  // Makes all members except the first Bare, for an allocation. Must follow ask_all() or
  // assume_started().
  void keep_first();

  [[nodiscard]] std::size_t count() const { return states_.size(); }

  [[nodiscard]] Member operator[](std::size_t member) const { return states_[member]; }

  [[nodiscard]] bool is_gone(std::size_t member) const { return states_[member] == Member::Gone; }

  // Returns true if the attempt has, or may have, something there.
  [[nodiscard]] bool has_tasks(std::size_t member) const {
    return states_[member] != Member::Gone && states_[member] != Member::Bare;
  }

  // Returns the number of members that have tasks.
  [[nodiscard]] std::size_t remaining() const { return remaining_; }

  [[nodiscard]] std::vector<std::size_t> in(Member state) const;

  // Has an effect only on an Asked member. Returns true if no other answer is missing.
  bool prepared(std::size_t member);
  // A member of an attempt that is being launched has lost its preparation.
  void ask_again(std::size_t member);
  // Records that StartTasks is sent; the job has been scheduled for `scheduled` so far.
  void start(std::size_t member, base::Duration scheduled);
  // Records that the member's tasks exist. Returns false if that is known already, or it was not
  // started.
  bool began(std::size_t member);
  // Records the node's statement whether tasks of the member have existed.
  void note_run(std::size_t member, bool has_run);
  // Returns false if it had no tasks.
  bool gone(std::size_t member);

  // Returns true if a task has existed, or perhaps has on a member that went without a report.
  [[nodiscard]] bool has_run() const { return has_run_; }

  // Returns true unless it is known that no task has existed.
  [[nodiscard]] bool may_have_run() const { return has_run_ || !in(Member::Started).empty(); }

  // Returns the members that were started but are not known to have begun, ascending.
  [[nodiscard]] const std::set<std::size_t>& not_begun() const { return not_begun_; }

  // Returns the scheduled time of the job when StartTasks was last sent to a member.
  [[nodiscard]] base::Duration start_scheduled() const { return start_scheduled_; }

 private:
  std::vector<Member> states_;  // [member]
  std::size_t asked_ = 0;
  std::size_t remaining_ = 0;
  std::set<std::size_t> not_begun_;
  base::Duration start_scheduled_{0};
  bool has_run_ = false;
};

}  // namespace score::gang
