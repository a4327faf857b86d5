// FreezeWatch finds attempts that have been stopped for longer than their timetable can explain: it
// has let them run since, or names them not at all. An attempt that the timetable never lets run is
// not one of them: the head has suspended it.
#pragma once

#include "gang/node/switch_plan.hpp"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace score::gang {

// Returns the longest time in a row for which the plan stops the attempt, nullopt if it never lets
// it run.
[[nodiscard]] std::optional<Duration> longest_pause(const SwitchPlan& plan, AttemptId attempt);

// Returns true if the plan is in force and stops the attempt without ever letting it run.
[[nodiscard]] bool is_left_out(const SwitchPlan& plan, AttemptId attempt, TimePoint now);

class FreezeWatch {
 public:
  // A switch may be this late before the attempt counts.
  static constexpr Duration kGrace = std::chrono::seconds{2};
  // The idle watch holds an attempt in the background for this long at most.
  static constexpr std::optional<Duration> kLongestHold = std::chrono::seconds{5};

  struct Stopped {
    AttemptId attempt{0};
    Duration ran{0};  // so far
  };

  struct Overdue {
    AttemptId attempt{0};
    Duration stopped{0};  // at least
  };

  // `stopped` are all attempts that are stopped now, `plan` is in force. Must be called regularly.
  // An attempt that stays stopped is returned by each call.
  std::vector<Overdue> check(std::span<const Stopped> stopped, const SwitchPlan& plan,
                             TimePoint now);

 private:
  struct Seen {
    Duration ran{0};
    TimePoint since{};  // of the first call that saw it stopped with this `ran`
  };

  std::map<AttemptId, Seen> seen_;
};

}  // namespace score::gang
