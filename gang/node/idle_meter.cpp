#include "gang/node/idle_meter.hpp"

#include <algorithm>

namespace score::gang {

namespace {

constexpr double kWhole = 0.9;  // a share that uses less than this of its time waits now and then
constexpr double kCrowd = 0.1;  // a share that waits more than this has many neighbours
constexpr int kMoment = 10;     // idle for less than this many times `least` is not worth it
// The kernel counts the use of a running task at its ticks, usually 4 ms apart.
constexpr Duration kMeterTick = std::chrono::microseconds{3500};

Duration part_of(Duration whole, double share) {
  return Duration{static_cast<std::int64_t>(static_cast<double>(whole.count()) * share)};
}

}  // namespace

[[gnu::hot]] bool IdleMeter::is_use(Duration ran, Duration used) const {
  return used > part_of(ran, rule_.share) + rule_.per_check;
}

[[gnu::hot]] bool IdleMeter::is_whole(Duration ran, Duration used) {
  return used >= part_of(ran, kWhole);
}

bool IdleMeter::is_crowded(Duration ran, Duration waited) {
  return waited > part_of(ran, kCrowd);
}

[[gnu::hot]] bool IdleMeter::add(Duration ran, Duration used, Duration waited) {
  const bool was_idle = is_idle_;
  has_used_ = is_use(ran, used) || waited > part_of(ran, rule_.waiting);
  may_be_idle_ = !has_used_ || (!is_whole(ran, used + waited) && !is_crowded(ran, waited));
  if (has_used_) {
    wake();
    return was_idle;
  }
  ++quiet_checks_;
  quiet_ += ran;
  const bool is_long =
      quiet_checks_ >= rule_.checks * quiet_factor_ && quiet_ >= least() * quiet_factor_;
  is_idle_ = is_idle_ || is_long;
  return is_idle_ != was_idle;
}

Duration IdleMeter::least() const {
  if (slice_ == Duration{0}) return rule_.least;
  return std::min(rule_.least, std::max<Duration>(slice_ / 4, kMeterTick));
}

void IdleMeter::wake() {
  if (is_idle_) {
    const bool was_moment = quiet_ < rule_.least * kMoment;
    quiet_factor_ = was_moment ? std::min(quiet_factor_ * 2, kMaxQuietFactor) : 1;
  }
  is_idle_ = false;
  quiet_checks_ = 0;
  quiet_ = Duration{0};
}

}  // namespace score::gang
