#include "scored/node/observe/sample_fill.hpp"

#include <algorithm>

namespace score::node {

monitor::SwitchSample to_sample(const SwitchRecord& record) {
  monitor::SwitchSample sample;
  sample.due = record.due;
  sample.woke = record.woke;
  sample.stopped = record.stopped;
  sample.guarded = record.guarded;
  sample.saved = record.saved;
  sample.restored = record.restored;
  sample.done = record.done;
  return sample;
}

void fill_task(const monitor::TaskSample& task, wire::TaskSample& out) {
  out.set_rank(task.rank.value());
  out.set_pid(task.pid);
  out.set_state(static_cast<std::uint32_t>(task.state));
  out.set_user_ns(task.user.count());
  out.set_system_ns(task.system.count());
  out.set_waited_ns(task.waited.count());
  out.set_switches(task.switches);
  out.set_memory_bytes(task.memory.value());
  out.set_processes(task.processes);
  if (!task.pm) return;
  out.set_has_pm(true);
  out.set_waits_in_pm(task.pm->waits);
  out.set_sent_messages(task.pm->traffic.sent_messages);
  out.set_received_messages(task.pm->traffic.received_messages);
  out.set_sent_bytes(task.pm->traffic.sent_bytes);
  out.set_received_bytes(task.pm->traffic.received_bytes);
}

void fill_switch(const SwitchRecord& record, Duration offset, wire::SwitchRecord& out) {
  out.set_due_ns((record.due + offset).time_since_epoch().count());
  out.set_woke_ns(record.woke.count());
  out.set_stopped_ns(record.stopped.count());
  if (record.restored > record.stopped) {
    out.set_guarded_ns(record.guarded.count());
    out.set_saved_ns(record.saved.count());
    out.set_restored_ns(record.restored.count());
  }
  out.set_done_ns(record.done.count());
  out.set_slice_ns(record.slice.count());
  out.set_busy(record.busy != 0);
  const auto listed = [](std::uint64_t count) {
    return std::min<std::uint64_t>(count, SwitchRecord::kMaxListed);
  };
  for (std::size_t i = 0; i < listed(record.left_count); ++i) out.add_left(record.left[i].value());
  for (std::size_t i = 0; i < listed(record.entered_count); ++i) {
    out.add_entered(record.entered[i].value());
  }
  for (std::size_t i = 0; i < listed(record.filling_count); ++i) {
    out.add_filling(record.filling[i].value());
  }
}

void fill_counts(const monitor::NodeTotals& counts, wire::SwitchTotals& out) {
  out.set_switches(counts.switches);
  out.set_late(counts.late);
  out.set_busy_ns(counts.busy.count());
  out.set_overhead_wake_ns(counts.overhead.wake.count());
  out.set_overhead_stop_ns(counts.overhead.stop.count());
  out.set_overhead_network_ns(counts.overhead.network.count());
  out.set_overhead_go_ns(counts.overhead.go.count());
}

void fill_totals(const monitor::NodeTotals& totals, wire::SwitchTotals& out) {
  fill_counts(totals, out);
  for (const auto& phase : totals.phases) {
    auto& added = *out.add_phases();
    for (const std::uint64_t count : phase.counts) added.add_buckets(count);
    added.set_sum_ns(phase.sum.count());
  }
  out.set_user_ns(totals.user.count());
  out.set_system_ns(totals.system.count());
  out.set_sent_bytes(totals.traffic.sent_bytes);
  out.set_received_bytes(totals.traffic.received_bytes);
  out.set_filled_ns(totals.filled.count());
}

}  // namespace score::node
