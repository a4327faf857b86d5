#include "scored/node/idle_watch.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace score::node {

namespace {

using namespace std::chrono_literals;

constexpr Duration kShortestLook = 20ms;
constexpr Duration kLongestLook = 500ms;
constexpr Duration kShortestProbe = 10ms;
constexpr int kHeldLooks = 10;                      // one held runs a tenth of the time at most
constexpr std::string_view kUsage = "usage_usec ";  // of cpu.stat
constexpr std::string_view kWaited = " total=";     // of cpu.pressure, in its line "some"
constexpr std::int64_t kMostMicroseconds = Duration::max() / 4us;

// The microseconds that follow `key` in the first line; < 0: they do not.
Duration number_after(int file, std::string_view key) {
  std::array<char, 128> text;
  const ssize_t got = pread(file, text.data(), text.size(), 0);
  std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  const auto at = line.find(key);
  if (at == std::string_view::npos) return Duration{-1};
  std::int64_t microseconds = -1;
  const auto parsed =
      std::from_chars(line.data() + at + key.size(), line.data() + line.size(), microseconds);
  if (parsed.ec != std::errc() || microseconds > kMostMicroseconds) return Duration{-1};
  return std::chrono::microseconds{microseconds};
}

}  // namespace

Result<std::unique_ptr<CpuUsage>> CgroupUsage::open(const std::string& cgroup) {
  auto stat = open_file(cgroup + "/cpu.stat", O_RDONLY);
  if (!stat) return stat.error();
  auto pressure = open_file(cgroup + "/cpu.pressure", O_RDONLY);
  return std::make_unique<CgroupUsage>(*std::move(stat),
                                       pressure ? *std::move(pressure) : UniqueFd());
}

CpuUsage::Reading CgroupUsage::read() noexcept {
  Reading reading;
  reading.used = number_after(stat_.get(), kUsage);
  if (pressure_) reading.waited = std::max(number_after(pressure_.get(), kWaited), Duration{0});
  return reading;
}

WatchPace pace_of(const gang::SwitchPlan& plan) {
  WatchPace pace;
  pace.is_shared = std::any_of(plan.segments.begin(), plan.segments.end(),
                               [](const auto& segment) { return !segment.jobs.empty(); });
  if (!pace.is_shared) return pace;
  const Duration slice = plan.cycle / static_cast<std::int64_t>(plan.segments.size());
  pace.background = std::clamp<Duration>(slice / 2, kShortestLook, kLongestLook);
  const bool is_long = plan.segments.size() > 1 && slice >= 4 * kShortestProbe;
  if (is_long) pace.in_slice = std::max<Duration>(slice / 8, kShortestProbe);
  return pace;
}

void SlotWatch::set_background(bool background, TimePoint now) {
  if (std::exchange(is_background_, background) == background) return;
  is_held_ = false;
  if (background) return;
  if (!is_stopped_) measure(now);  // what it did there is no part of its slice
  meter_.reset();
  idle_.store(false, std::memory_order_release);
}

void SlotWatch::goes_on(TimePoint now) {
  is_stopped_ = false;
  since_ = now;
}

void SlotWatch::stops(TimePoint now) {
  if (usage_ != nullptr && !is_stopped_) measure(now);
  is_stopped_ = true;
}

void SlotWatch::measure(TimePoint now) {
  if (usage_ == nullptr) return;
  const CpuUsage::Reading reading = usage_->read();
  if (reading.used < Duration{0}) return;
  if (last_.used >= Duration{0}) {
    meter_.add(now - since_, reading.used - last_.used, reading.waited - last_.waited);
  }
  last_ = reading;
  since_ = now;
  idle_.store(meter_.is_idle(), std::memory_order_release);
}

std::optional<TimePoint> SlotWatch::next_look(const WatchPace& pace) const {
  if (usage_ == nullptr) return std::nullopt;
  if (is_held_) return held_until_;
  if (is_stopped_) return std::nullopt;
  if (is_background_) return since_ + pace.background;
  const bool soon = pace.in_slice > Duration{0} && meter_.may_be_idle() && !meter_.is_idle();
  return since_ + (soon ? pace.in_slice : pace.slow);
}

void SlotWatch::look(TimePoint now, const WatchPace& pace) {
  if (is_held_) {
    is_held_ = false;
    return;
  }
  measure(now);
  since_ = now;  // also if it could not be measured
  is_held_ = is_background_ && pace.is_shared && meter_.has_used();
  if (is_held_) held_until_ = now + kHeldLooks * pace.background;
}

}  // namespace score::node
