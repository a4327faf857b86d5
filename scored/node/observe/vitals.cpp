#include "scored/node/observe/vitals.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

namespace score::node {

namespace {

constexpr std::size_t kMaxStatmBytes = 256;

std::int64_t nanoseconds(const timeval& time) {
  return (Duration(std::chrono::seconds{time.tv_sec}) + std::chrono::microseconds{time.tv_usec})
      .count();
}

// Reads the second number of /proc/self/statm, the resident pages.
std::uint64_t resident_bytes() {
  const auto text = read_file("/proc/self/statm", kMaxStatmBytes);
  if (!text) return 0;
  const auto numbers = split(*text, ' ');
  if (numbers.size() < 2) return 0;
  const auto pages = parse_number<std::uint64_t>(numbers[1]).value_or(0);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

template <typename Ids, typename Add>
void list_ids(const Ids& ids, std::uint32_t count, Add add) {
  const auto listed = std::min<std::size_t>(count, ids.size());
  for (std::size_t i = 0; i < listed; ++i) add(ids[i].value());
}

}  // namespace

void Vitals::fill(wire::Heartbeat& message, TimePoint now) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  message.set_cpu_ns(nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime));
  if (is_memory_due(now)) {
    resident_bytes_ = resident_bytes();
    memory_due_ = now + kMemoryPeriod;
  }
  message.set_rss_bytes(resident_bytes_);
}

void fill_trace(const SwitchTrace::Extract& extract, const gang::ClockFilter& clock, TimePoint now,
                wire::NodeTrace& trace) {
  trace.set_lost(extract.lost);
  trace.set_clock_offset_ns(clock.offset().count());
  trace.set_clock_error_ns(clock.error_bound(now).count());
  for (const SwitchRecord& record : extract.records) {
    auto& out = *trace.add_switches();
    out.set_due_ns(record.due.time_since_epoch().count());
    out.set_woke_ns(record.woke.count());
    out.set_stopped_ns(record.stopped.count());
    out.set_done_ns(record.done.count());
    out.set_guarded_ns(record.guarded.count());
    out.set_saved_ns(record.saved.count());
    out.set_restored_ns(record.restored.count());
    out.set_epoch(record.epoch.value());
    out.set_slice_ns(record.slice.count());
    out.set_busy(record.busy != 0);
    list_ids(record.left, record.left_count, [&](std::uint64_t id) { out.add_left(id); });
    list_ids(record.entered, record.entered_count, [&](std::uint64_t id) { out.add_entered(id); });
    const auto filling = static_cast<std::uint32_t>(record.filling_count);
    list_ids(record.filling, filling, [&](std::uint64_t id) { out.add_filling(id); });
  }
}

}  // namespace score::node
