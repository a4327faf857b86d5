#include "scored/node/idle_watch.hpp"

#include "scored/node/kernel_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <string_view>

namespace score::node {

namespace {

using namespace std::chrono_literals;

constexpr Duration kShortestLook = 20ms;
constexpr Duration kShortestSpan = 40ms;  // of its own time, between looks at the ends of slices
// A job that needed all of its time, or got little of a crowded node's, is looked at again after so
// many slices in which its first task goes on like that, or at once. So few that one slice of rest
// shows in all of them together.
constexpr int kTrustedSlices = 8;
constexpr Duration kLongestLook = 500ms;
constexpr Duration kShortestProbe = 10ms;
constexpr int kHeldLooks = 10;                      // one held runs a tenth of the time at most
constexpr std::string_view kUsage = "usage_usec ";  // of cpu.stat
constexpr std::string_view kWaited = " total=";     // of cpu.pressure, in its line "some"
constexpr std::int64_t kMostMicroseconds = Duration::max() / 4us;

// The microseconds that follow `key` in the first line; < 0: they do not.
[[gnu::hot]] Duration number_after(int file, std::string_view key) {
  std::array<char, 128> text;
  const long got = kernel_call(SYS_pread64, file, address_of(text.data()), text.size(), 0);
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

[[gnu::hot]] Duration CgroupUsage::used() noexcept {
  return number_after(stat_.get(), kUsage);
}

[[gnu::hot]] Duration CgroupUsage::waited() noexcept {
  return pressure_ ? std::max(number_after(pressure_.get(), kWaited), Duration{0}) : Duration{0};
}

[[gnu::hot]] Duration CgroupUsage::used_by(pid_t process) noexcept {
  return kernel_time(cpu_clock_of(process));
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

[[gnu::hot]] void SlotWatch::set_background(bool background, TimePoint now) {
  if (std::exchange(is_background_, background) == background) return;
  is_held_ = false;
  if (!background && !is_stopped_) measure(now);  // what it did there is no part of its slice
}

[[gnu::hot]] void SlotWatch::goes_on(TimePoint now) {
  is_stopped_ = false;
  since_ = now;
}

[[gnu::hot]] void SlotWatch::stops(TimePoint now) {
  if (usage_ != nullptr && !is_stopped_) {
    ran_ += now - since_;
    since_ = now;
    const bool is_due = ran_ - leader_ran_ >= kShortestSpan;  // since it was looked at or asked
    if (is_background_ || (is_due && !is_leader_busy())) measure(now);
  }
  is_stopped_ = true;
}

[[gnu::hot]] bool SlotWatch::is_leader_busy() {
  const pid_t leader = leader_.load(std::memory_order_relaxed);
  if (leader == 0) return false;
  const Duration total = usage_->used_by(leader);
  if (total < Duration{0}) return false;
  const Duration used = total - std::exchange(leader_used_, total);
  const Duration ran = ran_ - std::exchange(leader_ran_, ran_);
  if (trust_ == 0) return false;
  const bool goes_on = meter_.is_whole(ran, used) || (is_crowded_ && meter_.is_use(ran, used));
  is_doubted_ = !goes_on && !is_crowded_;  // it needed all of its time until now
  --trust_;
  return goes_on && trust_ > 0;
}

[[gnu::hot]] void SlotWatch::measure(TimePoint now) {
  if (usage_ == nullptr) return;
  const Duration used = usage_->used();
  if (used < Duration{0}) return;
  if (used_ >= Duration{0}) judge(ran_ + (now - since_), used - used_);
  used_ = used;
  since_ = now;
  ran_ = leader_ran_ = Duration{0};
  idle_.store(meter_.is_idle(), std::memory_order_release);
}

// What it waited is asked for only if it did not use all of its time.
[[gnu::hot]] void SlotWatch::judge(Duration ran, Duration used) {
  const bool is_doubted = std::exchange(is_doubted_, false);
  Duration waited{0};
  if (!meter_.is_whole(ran, used)) {
    const Duration total = usage_->waited();
    waited = std::min(total - std::exchange(waited_, total), ran);
  }
  meter_.add(ran, used, waited);
  const bool wants_all = meter_.is_whole(ran, used + waited);
  if (is_doubted || (wanted_all_ && !wants_all)) meter_.doubt();
  wanted_all_ = wants_all;
  const bool is_busy = wants_all || (meter_.has_used() && meter_.is_crowded(ran, waited));
  is_crowded_ = is_busy && !meter_.is_whole(ran, used);
  trust_ = is_busy && !is_doubted ? kTrustedSlices : 0;
}

[[gnu::hot]] std::optional<TimePoint> SlotWatch::next_look(const WatchPace& pace) const {
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
