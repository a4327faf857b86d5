// Processor time of an attempt that may fill: in its turns, which shows whether it leaves time to
// others, and at idle priority.
#pragma once

#include "gang/node/fill_meter.hpp"
#include "scored/node/idle/idle_watch.hpp"

#include <atomic>

namespace score::node {

enum class Role : std::uint8_t {
  Stopped,
  Fills,  // runs at idle priority: it is not its turn
  Runs,
};

class FillAccount {
 public:
  explicit FillAccount(std::uint32_t cores) : meter_(cores) {}

  struct Change {
    Role role = Role::Runs;  // from now on
    TimePoint at{};
    bool may_fill = false;     // by the plan: only then it is measured
    bool had_fillers = false;  // attempts filled until now
  };

  // Reads the processor time if the role has changed. Thread: the switcher's.
  void note(const Change& change, IdleWatch& watch);

  [[nodiscard]] bool leaves_time() const { return meter_.leaves_time(); }

  // Thread: any.
  [[nodiscard]] bool fills() const { return fills_from_.load(std::memory_order_relaxed) >= 0; }

  // Used at idle priority before it fills now. Thread: any.
  [[nodiscard]] Duration before() const {
    return Duration{filled_.load(std::memory_order_relaxed)};
  }

  // Used at idle priority so far. Thread: any.
  [[nodiscard]] Duration read(const IdleWatch& watch) const;

 private:
  gang::FillMeter meter_;
  Role role_ = Role::Runs;
  TimePoint since_{};
  Duration used_{-1};                          // then, < 0: not known
  std::atomic<Duration::rep> filled_{0};       // until then
  std::atomic<Duration::rep> fills_from_{-1};  // used_ while it fills; < 0: it does not
};

}  // namespace score::node
