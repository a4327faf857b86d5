// Represents one attempt in the switch.
#pragma once

#include "base/model/model.hpp"
#include "scored/node/idle/fill_account.hpp"
#include "scored/node/idle/idle_watch.hpp"
#include "scored/node/kernel/run_clock.hpp"
#include "scored/node/kernel/switch_target.hpp"

#include <array>
#include <atomic>
#include <memory>

namespace score::node {

enum class Role : std::uint8_t {
  Stopped,
  Fills,  // runs at idle priority, outside its turn
  Runs,
};

// Its state belongs to the switcher's thread; the other members do not change. The members that
// every switch needs come first, in as few cache lines as possible, because a switch finds them
// cold.
struct alignas(64) SwitchEntry {
  using Boundary = TimePoint::rep;  // in ns of cluster time; 0: none

  // Without `usage` it is never idle. `cores` is the number of cores that it has been given.
  SwitchEntry(AttemptId id, std::unique_ptr<SwitchTarget> how,
              std::unique_ptr<CpuUsage> usage = nullptr, gang::IdleRule rule = {},
              std::uint32_t cores = 1)
      : attempt(id), target(std::move(how)), watch(std::move(usage), rule, cores) {}

  const AttemptId attempt;
  const std::unique_ptr<SwitchTarget> target;
  const int freezer = target->freezer();    // < 0: use the target
  const int priority = target->priority();  // < 0: use the target
  const bool has_helpers = target->has_helpers();
  Role role = Role::Runs;
  bool is_low = false;  // at idle priority; kept while it is stopped
  // The timetable lets it run, that is, the plan knows it and it is not in the background.
  std::atomic<bool> has_turn{false};
  TimePoint stopped_at{};  // if stopped
  RunClock clock;          // role Runs; started by the maker of the entry
  Boundary waits_for = 0;  // barrier mode: it enters at this boundary and is stopped until its gang
                           // has met
  IdleWatch watch;
  FillAccount account;
  bool can_fill = target->can_fill();

  // These members are for barrier mode; the arrays are indexed by base::Meeting.
  std::array<std::atomic<Boundary>, base::kMeetings> reached{};  // for the main thread to report
  std::array<std::atomic<Boundary>, base::kMeetings> met{};      // set by the main thread
  std::array<Boundary, base::kMeetings> reported{};              // by the main thread
  Boundary left_at = 0;                                          // the meeting of a leaving attempt
  bool is_restored = false;  // its channel has been restored for waits_for
  TimePoint drained_by{};    // until then it waits for the leaving attempts to meet
  TimePoint goes_by{};       // then it is continued without its gang

  [[nodiscard]] bool is_stopped() const { return role == Role::Stopped; }

  // Thread: the switcher's. These return an errno or 0.
  int stop() noexcept {
    const int error = freezer >= 0 ? write_control(freezer, '1') : target->stop();
    if (error == 0 && has_helpers)
      set_low(true);  // where this is impossible they keep their weight
    return error;
  }

  int go() noexcept { return freezer >= 0 ? write_control(freezer, '0') : target->go(); }

  int set_low(bool low) noexcept {
    if (is_low == low) return 0;
    const int error =
        priority >= 0 ? write_control(priority, low ? '1' : '0') : target->set_low(low);
    if (error == 0) is_low = low;
    return error;
  }
};

}  // namespace score::node
