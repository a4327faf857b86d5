#include "scored/node/switch/entry_control.hpp"

namespace score::node {

// The clock stops before the processes do. So a reader that sees it run before and after a reading
// has not read a stopped process.
[[gnu::hot]] std::uint64_t EntryControl::stop(SwitchEntry& entry, TimePoint at) {
  const bool ran = entry.clock.is_running();
  entry.clock.stop(at);
  has_switched_ = true;
  if (entry.stop() != 0) {
    if (ran) entry.clock.start(at);
    return 1;
  }
  entry.role = Role::Stopped;
  entry.stopped_at = at;
  return 0;
}

[[gnu::hot]] std::uint64_t EntryControl::lower(SwitchEntry& entry, TimePoint at) {
  if (entry.set_low(true) != 0) return 1 + stop(entry, at);
  entry.clock.stop(at);
  entry.role = Role::Fills;
  has_switched_ = true;
  return 0;
}

[[gnu::hot]] std::uint64_t EntryControl::let_fill(SwitchEntry& entry, ChannelUser* network,
                                                  TimePoint now) {
  if (entry.set_low(true) != 0) return 1;
  if (network != nullptr) network->add_stopped(now - entry.stopped_at);
  if (entry.go() != 0) return 1;
  entry.role = Role::Fills;
  return 0;
}

// Sets the priority first, so that the attempt continues at the right one. If that cannot be set,
// it is continued nevertheless.
[[gnu::hot]] std::uint64_t EntryControl::resume(SwitchEntry& entry, ChannelUser* network,
                                                TimePoint at, TimePoint now) {
  has_switched_ = true;
  entry.left_at = 0;
  const int low = entry.set_low(false);
  if (entry.is_stopped()) {
    if (network != nullptr) network->add_stopped(now - entry.stopped_at);
    if (entry.go() != 0) return 1;
  }
  entry.role = low != 0 ? Role::Fills : Role::Runs;
  if (low != 0) return 1;
  entry.clock.start(at);
  return 0;
}

[[gnu::hot]] void EntryControl::note(const SwitchRecord& record) {
  trace_.put(record);
  // A new attempt that is already running is recorded, but not counted.
  if (has_switched_) count(counters_.switches, std::uint64_t{1});
  if (record.entered_count > 0) count(counters_, overhead_of(record.moments()));
  if (is_late(record.woke, record.slice)) count(counters_.late, std::uint64_t{1});
}

}  // namespace score::node
