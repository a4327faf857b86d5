#include "scored/node/switch/channel_handover.hpp"

#include <algorithm>

namespace score::node {

namespace {

// If a node lets its tasks send before a different node has restored, new frames mix with those
// that are put back there, and go-back-N sends all of them again. So all nodes continue together,
// after the guard and after the time that this node's own restoring recently took, which estimates
// that of the others. The estimate follows longer times at once and shorter ones slowly, within
// these bounds.
constexpr Duration kLeastRestore = std::chrono::microseconds{40};
constexpr int kForgetRestore = 16;  // in handovers

}  // namespace

[[gnu::hot]] void ChannelHandover::hand_over(const SwitchProgram& program,
                                             const SwitchPosition& where, SwitchRecord& record) {
  if (where.runs == nullptr) return;
  const auto& networks = program.networks;
  const auto takes = [&](std::size_t i) {
    return networks[i] && where.runs[i] != 0 && program.entries[i]->waits_for == 0 &&
           !networks[i]->holds_channel();
  };
  bool is_any = false;
  bool must_wait = false;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (!takes(i)) continue;
    is_any = true;
    must_wait = must_wait || (enters(program, i, where) && networks[i]->follows_another());
  }
  if (!is_any) return;
  const Duration guard{clock_.guard_ns.load(std::memory_order_relaxed)};
  if (must_wait) {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      // Frames that have already arrived need not be saved after the guard.
      if (takes(i)) networks[i]->empty_channel(networks, counters_);
    }
    clock_.sleep_until(record.due + record.stopped + guard);
  }
  record.guarded = clock_.now() - record.due;
  std::uint64_t taken = 0;  // bits by entry; entries beyond 64 only lose saved frames
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (!takes(i)) continue;
    networks[i]->take_channel(networks, counters_);
    if (i < 64) taken |= std::uint64_t{1} << i;
  }
  record.saved = clock_.now() - record.due;
  for (std::size_t i = 0; i < networks.size() && i < 64; ++i) {
    if ((taken >> i & 1) != 0) networks[i]->restore(counters_);
  }
  record.restored = clock_.now() - record.due;
  if (must_wait) restore_together(record, guard);
}

void ChannelHandover::restore_together(const SwitchRecord& record, Duration guard) {
  restore_time_ = std::max(restore_time_ - restore_time_ / kForgetRestore, record.restored - guard);
  restore_time_ = std::clamp(restore_time_, kLeastRestore, kMostRestore);
  clock_.sleep_until(record.due + guard + restore_time_);
}

}  // namespace score::node
