#include "scored/node/idle/idle_watch.hpp"

#include <algorithm>

namespace score::node {

using gang::IdleAction;
using gang::IdleEvent;

[[gnu::hot]] void IdleWatch::set_background(bool background, TimePoint now) {
  handle(background ? IdleEvent::ToBackground : IdleEvent::ToTurns, now, {});
}

[[gnu::hot]] void IdleWatch::handle(IdleEvent event, TimePoint now, const WatchPace& pace) {
  IdleAction action = judge_.on(event, now, pace);
  if (action == IdleAction::None || usage_ == nullptr) return;
  while (action != IdleAction::None) action = carry_out(action, now);
  idle_.store(judge_.is_idle(), std::memory_order_release);
}

[[gnu::hot]] IdleAction IdleWatch::carry_out(IdleAction action, TimePoint now) {
  switch (action) {
    case IdleAction::None:
      break;
    case IdleAction::Probe:
    case IdleAction::Check:
      return judge_.take_leader(leader_time());
    case IdleAction::ReadUsage: {
      const Duration used = used_at(now);
      if (used < Duration{0}) return judge_.take_usage(used, {}, false);
      const PolledTime::Reading polled = polled_.read(judge_.ran());
      judge_.note_polls(polled.polls);
      return judge_.take_usage(used, polled.used, polled.rests);
    }
    case IdleAction::ReadWaited:
      return judge_.take_waited(usage_->waited());
  }
  return IdleAction::None;
}

// Returns the leader's processor time without polling; < 0: unknown.
[[gnu::hot]] Duration IdleWatch::leader_time() const {
  const pid_t leader = leader_.load(std::memory_order_relaxed);
  const Duration total = leader != 0 ? usage_->used_by(leader) : Duration{-1};
  return total < Duration{0} ? total : std::max(total - polled_.of_first(), Duration{0});
}

[[gnu::hot]] void IdleWatch::skip(Duration used, bool is_stopped) noexcept {
  if (usage_ == nullptr) return;
  polled_.forget();
  judge_.skip(used, leader_time(), usage_->waited(), is_stopped);
}

}  // namespace score::node
