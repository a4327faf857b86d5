#pragma once
// Is a node's share of an attempt idle? Judged by the processor time that its tasks used while they
// were let run: a task that waits, for whatever it is, uses none.

#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;

struct IdleRule {
  double share = 0.01;  // of the time it could run; who uses less does nothing
  // ... unless it had to wait for more than this: on a crowded machine the busy use little too, and
  // the idle wait a moment when they are let go.
  double waiting = 0.25;
  std::uint32_t looks = 2;                         // in a row without use make it idle
  Duration least = std::chrono::milliseconds{20};  // ... if they cover so much of its own time
  // What being stopped and going on once costs the tasks themselves.
  Duration per_look = std::chrono::microseconds{100};
};

class IdleMeter {
 public:
  IdleMeter() = default;

  explicit IdleMeter(IdleRule rule) : rule_(rule) {}

  // The share could run for `ran` since the last look, used `used` of processor time, and wanted to
  // run but had to wait for a processor for `waited`. True if is_idle() is another now. One look
  // with use ends idleness. Who is idle for short moments only, again and again, must be quiet for
  // longer each time, up to kMaxPatience times as long.
  bool add(Duration ran, Duration used, Duration waited = Duration{0});

  // Slices are so long from now on, 0: there are none. Of short ones a quarter is enough rest, or a
  // tick of the kernel's, where that is less than IdleRule::least.
  void set_slice(Duration slice) { slice_ = slice; }

  // Worth looking again before its slice is over, for a reason of the caller's.
  void doubt() { may_be_idle_ = true; }

  // Who used so much needed some of its time, or all of it.
  [[nodiscard]] bool is_use(Duration ran, Duration used) const;
  [[nodiscard]] static bool is_whole(Duration ran, Duration used);
  // Who waited so much gets less than it wants: that it used little says little about it.
  [[nodiscard]] static bool is_crowded(Duration ran, Duration waited);

  [[nodiscard]] bool is_idle() const { return is_idle_; }

  // It used more than nothing the last time.
  [[nodiscard]] bool has_used() const { return has_used_; }

  // It did nothing, or did not need all of its time though there was enough: worth looking again
  // before its slice is over.
  [[nodiscard]] bool may_be_idle() const { return may_be_idle_; }

  static constexpr std::uint32_t kMaxPatience = 16;

 private:
  void wake();
  [[nodiscard]] Duration least() const;

  IdleRule rule_;
  std::uint32_t quiet_looks_ = 0;
  Duration quiet_{0};  // own time since the last use
  Duration slice_{0};
  std::uint32_t patience_ = 1;
  bool is_idle_ = false;
  bool may_be_idle_ = false;
  bool has_used_ = false;
};

}  // namespace score::gang
