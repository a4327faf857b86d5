#pragma once
// IdleMeter decides whether a node's share of an attempt is idle. It uses the processor time that
// the tasks used while they were allowed to run: a waiting task, whatever it waits for, uses none.

#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;

struct IdleRule {
  double share = 0.01;  // of the time it could run; a share that uses less is quiet
  // A share is not quiet if it had to wait for more than this part of the time. On a crowded
  // machine busy shares use little too, and idle ones wait for a moment after they are thawed.
  double waiting = 0.25;
  std::uint32_t checks = 2;                        // consecutive quiet checks that make it idle
  Duration least = std::chrono::milliseconds{20};  // ... if they cover this much of its own time
  // One stop and continuation costs the tasks themselves this much.
  Duration per_check = std::chrono::microseconds{100};
};

class IdleMeter {
 public:
  IdleMeter() = default;

  explicit IdleMeter(IdleRule rule) : rule_(rule) {}

  // Records one check: since the last one the share could run for `ran`, used `used` of processor
  // time, and had to wait for a processor for `waited`. Returns true if is_idle() has changed. One
  // check with use ends idleness. A share that is repeatedly idle for short moments must be quiet
  // for longer each time, up to kMaxQuietFactor times as long.
  bool add(Duration ran, Duration used, Duration waited = Duration{0});

  // Sets the length of the slices from now on; 0 means that there are none. In short slices a
  // quarter of a slice of rest suffices, or a tick of the kernel, if that is less than
  // IdleRule::least.
  void set_slice(Duration slice) { slice_ = slice; }

  // Requests a new check before the slice is over, for a reason of the caller's.
  void doubt() { may_be_idle_ = true; }

  // Returns true if this use shows that the share needed some of its time, or all of it.
  [[nodiscard]] bool is_use(Duration ran, Duration used) const;
  [[nodiscard]] static bool is_whole(Duration ran, Duration used);
  // Returns true if the share waited so much that it got less than it needed. Low use is no
  // evidence of idleness then.
  [[nodiscard]] static bool is_crowded(Duration ran, Duration waited);

  [[nodiscard]] bool is_idle() const { return is_idle_; }

  // Returns true if it used more than nothing the last time.
  [[nodiscard]] bool has_used() const { return has_used_; }

  // Returns true if a new check before the end of its slice is useful: it did nothing, or did not
  // need all of its time although there was enough.
  [[nodiscard]] bool may_be_idle() const { return may_be_idle_; }

  static constexpr std::uint32_t kMaxQuietFactor = 16;

 private:
  void wake();
  [[nodiscard]] Duration least() const;

  IdleRule rule_;
  std::uint32_t quiet_checks_ = 0;
  Duration quiet_{0};  // own time since the last use
  Duration slice_{0};
  std::uint32_t quiet_factor_ = 1;
  bool is_idle_ = false;
  bool may_be_idle_ = false;
  bool has_used_ = false;
};

}  // namespace score::gang
