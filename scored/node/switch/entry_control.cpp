#include "scored/node/switch/entry_control.hpp"

namespace score::node {

// The clock stops before the processes do: a reader that sees it run before and afterwards has read
// no process that was stopped.
[[gnu::hot]] std::uint64_t EntryControl::stop(SwitchEntry& entry, TimePoint at) {
  const bool ran = entry.clock.is_running();
  entry.clock.stop(at);
  entry.stopped = entry.stop() == 0;
  has_switched_ = true;
  if (!entry.stopped) {
    if (ran) entry.clock.start(at);
    return 1;
  }
  entry.stopped_at = at;
  return 0;
}

[[gnu::hot]] std::uint64_t EntryControl::let_go(SwitchEntry& entry, ChannelUser* network,
                                                TimePoint at, TimePoint now) {
  if (network != nullptr) network->add_stopped(now - entry.stopped_at);
  entry.stopped = entry.go() != 0;
  has_switched_ = true;
  if (!entry.stopped) entry.clock.start(at);
  entry.left_at = 0;
  return entry.stopped ? 1 : 0;
}

[[gnu::hot]] void EntryControl::note(const SwitchRecord& record) {
  trace_.put(record);
  // A new attempt that runs already is recorded, but not counted.
  if (has_switched_) count(counters_.switches, std::uint64_t{1});
  if (record.entered_count > 0) count(counters_.lost_ns, record.done.count());
  if (record.woke > late_after_) count(counters_.late, std::uint64_t{1});
}

}  // namespace score::node
