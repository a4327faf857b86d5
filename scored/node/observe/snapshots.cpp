// A snapshot is taken when a slice ends, so that the load of a gang is that of whole slices. Only
// the clock of each process is read. It counts all threads of the process in nanoseconds and needs
// no file; the main thread reads everything else with the full samples.
#include "scored/node/observe/snapshots.hpp"

#include "pmlib/core/segment.hpp"
#include "scored/node/kernel/kernel_call.hpp"
#include "scored/node/switch/switch_entry.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

namespace {

// Returns 0 if the process is gone.
[[gnu::hot]] Duration used_by(pid_t process) {
  return std::max(kernel_time(cpu_clock_of(process)), Duration{0});
}

[[gnu::hot]] Duration used_by(const std::vector<pid_t>& processes) {
  Duration sum{0};
  for (const pid_t process : processes) sum += used_by(process);
  return sum;
}

std::size_t count_tasks(const std::vector<Snapshots::Gang>& gangs) {
  std::size_t count = 0;
  for (const auto& gang : gangs) count += gang.processes.size();
  return count;
}

}  // namespace

std::optional<monitor::PmReading> read_context(const UniqueFd& context) {
  pm::SegmentSummary summary;
  if (pm::read_summary(context.get(), summary) != 0) return std::nullopt;
  const auto& counters = summary.counters;
  monitor::PmReading reading;
  reading.waits = summary.idle;
  reading.traffic = {counters.messages_sent, counters.messages_received,
                     counters.bytes_sent + counters.rma_bytes_written, counters.bytes_received};
  return reading;
}

Snapshots::Snapshots(Duration period, std::vector<Gang> gangs)
    : period_(period), gangs_(std::move(gangs)) {
  last_.gangs.resize(gangs_.size());
  last_.tasks.resize(count_tasks(gangs_));
  kept_.resize(kMostKept, last_);
}

[[gnu::hot]] bool Snapshots::is_time(TimePoint now, std::optional<TimePoint> boundary) const {
  if (now >= next_) return true;
  if (next_ - now > period_ / 2) return false;
  return !boundary || *boundary - next_ > next_ - now;
}

[[gnu::hot]] std::optional<TimePoint> Snapshots::observe(TimePoint now,
                                                         std::optional<TimePoint> boundary,
                                                         Entries entries) {
  if (is_time(now, boundary)) {
    next_ = now + period_;
    record_all(entries, now);
  }
  if (boundary && *boundary - next_ <= period_ / 2) return std::nullopt;
  return next_;
}

[[gnu::hot]] void Snapshots::record_all(Entries entries, TimePoint now) {
  last_.taken = now;
  std::size_t first = 0;
  for (std::size_t i = 0; i < gangs_.size(); ++i) {
    const Gang& gang = gangs_[i];
    const auto before = std::exchange(last_.gangs[i], GangSnapshot());
    for (const auto& entry : entries) {
      if (entry->attempt != gang.attempt) continue;
      last_.gangs[i] = {true,
                        entry->clock.read(now),
                        entry->clock.is_running(),
                        entry->has_turn,
                        entry->account.fills(),
                        entry->account.before()};
      const bool has_run = last_.gangs[i].ran != before.ran || before.fills;
      if (has_run || !before.is_there) record_tasks(gang, first);
    }
    first += gang.processes.size();
  }
  const std::uint32_t end = written_.load(std::memory_order_relaxed);
  if (end - fetched_.load(std::memory_order_acquire) >= kMostKept) return;
  Snapshot& kept = kept_[end % kMostKept];
  kept.taken = last_.taken;
  std::copy(last_.gangs.begin(), last_.gangs.end(), kept.gangs.begin());
  std::copy(last_.tasks.begin(), last_.tasks.end(), kept.tasks.begin());
  written_.store(end + 1, std::memory_order_release);
}

[[gnu::hot]] void Snapshots::record_tasks(const Gang& gang, std::size_t first) {
  for (std::size_t i = 0; i < gang.processes.size(); ++i) {
    TaskSnapshot& task = last_.tasks[first + i];
    task.used = used_by(gang.processes[i]);
    if (gang.contexts && i < gang.contexts->size()) task.pm = read_context((*gang.contexts)[i]);
  }
}

std::vector<Duration> Snapshots::used() const {
  std::vector<Duration> all;
  all.reserve(last_.tasks.size());
  for (const Gang& gang : gangs_) {
    for (const auto& processes : gang.processes) all.push_back(used_by(processes));
  }
  return all;
}

}  // namespace score::node
