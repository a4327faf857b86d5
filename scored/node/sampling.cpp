// Samples are totals, so one that is not sent is not missed. What must not be missed are switches:
// their phases are counted with every heartbeat, and while somebody watches each is told once.
#include "scored/node/sampling.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "pmlib/segment.hpp"
#include "scored/node/process_tree.hpp"

#include <algorithm>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kLookUpPeriod = std::chrono::seconds{1};
constexpr Duration kTotalsPeriod = std::chrono::milliseconds{950};  // a second of samples
constexpr Duration kShortestPeriod = std::chrono::milliseconds{100};
constexpr Duration kBeforeDocument = std::chrono::milliseconds{15};
constexpr Duration kLongestPeriod = std::chrono::seconds{10};
constexpr std::size_t kMaxToldSwitches = 4'096;  // in one sample
constexpr std::size_t kMaxListBytes = 64 * limits::kKiB;

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

// Two descriptors a process are kept.
void raise_descriptor_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// Of cgroup.procs, a number a line.
std::vector<pid_t> read_pids(int file) {
  std::vector<pid_t> pids;
  std::array<char, 2'048> part;
  pid_t pid = 0;
  for (off_t at = 0; at < static_cast<off_t>(kMaxListBytes);) {
    const ssize_t got = pread(file, part.data(), part.size(), at);
    if (got <= 0) break;
    at += got;
    for (const char c : std::string_view(part.data(), static_cast<std::size_t>(got))) {
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
      } else {
        pids.push_back(std::exchange(pid, 0));
      }
    }
  }
  return pids;
}

void fill_task(const monitor::TaskSample& task, wire::TaskSample& out) {
  out.set_rank(task.rank.value());
  out.set_pid(task.pid);
  out.set_state(static_cast<std::uint32_t>(task.state));
  out.set_user_ns(task.user.count());
  out.set_system_ns(task.system.count());
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
  const auto listed = [](std::uint32_t count) {
    return std::min<std::size_t>(count, SwitchRecord::kMaxListed);
  };
  for (std::size_t i = 0; i < listed(record.left_count); ++i) out.add_left(record.left[i].value());
  for (std::size_t i = 0; i < listed(record.entered_count); ++i) {
    out.add_entered(record.entered[i].value());
  }
}

void fill_totals(const monitor::NodeTotals& totals, wire::SwitchTotals& out) {
  out.set_switches(totals.switches);
  out.set_late(totals.late);
  out.set_lost_ns(totals.lost.count());
  out.set_busy_ns(totals.busy.count());
  for (const auto& phase : totals.phases) {
    auto& added = *out.add_phases();
    for (const std::uint64_t count : phase.counts) added.add_buckets(count);
    added.set_sum_ns(phase.sum.count());
  }
  out.set_user_ns(totals.user.count());
  out.set_system_ns(totals.system.count());
  out.set_sent_bytes(totals.traffic.sent_bytes);
  out.set_received_bytes(totals.traffic.received_bytes);
}

}  // namespace

Sampling::Sampling(Parts parts) : parts_(parts) {}

void Sampling::watch(const wire::WatchNode& message) {
  if (message.once()) send_sample(false);
  const Duration wanted(message.period_ns());
  const Duration period =
      wanted <= Duration{0} ? Duration{0} : std::clamp(wanted, kShortestPeriod, kLongestPeriod);
  if (message.once() && wanted <= Duration{0}) return;
  if (period == period_) return;
  stop();
  if (period == Duration{0}) return;
  raise_descriptor_limit();
  period_ = period;
  parts_.tasks.spawn("sample", run(generation_));
}

void Sampling::stop() {
  ++generation_;
  period_ = Duration{0};
  watches_.clear();
  next_look_up_ = {};
  pending_ = {};
}

asio::awaitable<void> Sampling::run(std::uint64_t generation) {
  keep_up();
  pending_.clear();
  while (generation == generation_) {
    send_sample(true);
    co_await parts_.clock.sleep_until(next_sample(parts_.clock.now()));
  }
}

TimePoint Sampling::next_sample(TimePoint now) const {
  const Duration shift = parts_.agent.clock().offset() + kBeforeDocument;
  const auto passed = now.time_since_epoch() + shift;
  return TimePoint((passed / period_ + 1) * period_ - shift);
}

void Sampling::keep_up() {
  const auto extract = parts_.switcher.trace().read_new(seen_, SwitchTrace::kEntries / 2);
  lost_ += extract.lost;
  for (const SwitchRecord& record : extract.records) {
    const auto sample = to_sample(record);
    for (std::size_t i = 0; i < monitor::kSwitchPhases; ++i) {
      const auto length = length_of(sample, static_cast<monitor::SwitchPhase>(i));
      if (length) phases_[i].add(*length);
    }
    if (period_ > Duration{0} && pending_.size() < kMaxToldSwitches) pending_.push_back(record);
  }
}

// ---- one sample ---------------------------------------------------------------------------------

void Sampling::send_sample(bool with_tasks) {
  if (!parts_.head.is_greeted()) return;
  keep_up();
  const TimePoint now = parts_.clock.now();
  const Duration offset = parts_.agent.clock().offset();
  sample_.Clear();
  sample_.set_taken_ns((now + offset).time_since_epoch().count());
  sample_.set_totals_only(!with_tasks);
  if (with_tasks) {
    fill_gangs(now);
    for (const SwitchRecord& record : pending_) {
      fill_switch(record, offset, *sample_.add_switches());
    }
    pending_.clear();
    sample_.set_switches_lost(lost_);
  }
  if (!with_tasks || now - totals_told_ >= kTotalsPeriod) {
    if (with_tasks) totals_told_ = now;
    fill_totals(totals(with_tasks ? kLookUpPeriod : Duration(0)), *sample_.mutable_totals());
  }
  sample_.SerializeToString(&bytes_);
  parts_.head.send(proto::frame_type<wire::NodeSample>(), bytes_);
}

monitor::FindProcesses Sampling::finder(const Attempts::RunningTasks& tasks) const {
  if (parts_.cgroups == nullptr) return [pid = tasks.shepherd] { return descendants(pid); };
  const std::string path = parts_.cgroups->tasks_path(tasks.attempt) + "/cgroup.procs";
  auto opened = open_file(path, O_RDONLY);
  if (!opened) return [] { return std::vector<pid_t>(); };
  const auto file = std::make_shared<UniqueFd>(*std::move(opened));
  return [file] { return read_pids(file->get()); };
}

void Sampling::look_up() {
  const auto running = parts_.attempts.running();
  std::erase_if(watches_, [&](const auto& watch) {
    return std::none_of(running.begin(), running.end(),
                        [&](const auto& tasks) { return tasks.attempt == watch.first; });
  });
  for (const auto& tasks : running) {
    const auto found = watches_.find(tasks.attempt);
    if (found != watches_.end()) continue;
    Watch made{monitor::TaskWatch({tasks.ranks, tasks.pids}, finder(tasks)), std::nullopt};
    watches_.emplace(tasks.attempt, std::move(made));
  }
  for (auto& [attempt, watch] : watches_) {
    watch.tasks.look_up();
    watch.frozen_at.reset();
  }
}

namespace {

// None: it is no context, or one that its owner broke.
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

void add(monitor::Traffic& sum, const monitor::Traffic& part) {
  sum.sent_messages += part.sent_messages;
  sum.received_messages += part.received_messages;
  sum.sent_bytes += part.sent_bytes;
  sum.received_bytes += part.received_bytes;
}

}  // namespace

void Sampling::add_contexts(AttemptId attempt, std::vector<monitor::TaskSample>& tasks) const {
  const auto contexts = parts_.contexts.of(attempt);
  if (!contexts) return;
  for (std::size_t i = 0; i < tasks.size() && i < contexts->size(); ++i) {
    tasks[i].pm = read_context((*contexts)[i]);
    const bool is_awake = tasks[i].state == monitor::TaskState::Running ||
                          tasks[i].state == monitor::TaskState::Blocked;
    if (tasks[i].pm && tasks[i].pm->waits && is_awake) {
      tasks[i].state = monitor::TaskState::WaitsInPm;
    }
  }
}

void Sampling::count_traffic() {
  std::map<AttemptId, monitor::Traffic> now;
  for (const AttemptId attempt : parts_.contexts.attempts()) {
    const auto contexts = parts_.contexts.of(attempt);
    if (!contexts) continue;
    for (const UniqueFd& context : *contexts) {
      if (const auto reading = read_context(context)) add(now[attempt], reading->traffic);
    }
  }
  for (const auto& [attempt, traffic] : traffic_) {
    if (!now.contains(attempt)) add(ended_traffic_, traffic);
  }
  traffic_ = std::move(now);
}

// A gang that was frozen when it was read and has not run since is as it was.
void Sampling::read(AttemptId attempt, Watch& watch, Switcher::RunTime time) {
  if (!time.runs && watch.frozen_at == time.ran) return;
  watch.frozen_at = time.runs ? std::nullopt : std::optional(time.ran);
  add_contexts(attempt, watch.tasks.read(!time.runs));
}

void Sampling::fill_gangs(TimePoint now) {
  const bool has_new = parts_.attempts.running_count() != watches_.size();
  if (now >= next_look_up_ || has_new) {
    look_up();
    next_look_up_ = now + kLookUpPeriod;
  }
  for (auto& [attempt, watch] : watches_) {
    const auto time = parts_.switcher.run_time(attempt, now);
    read(attempt, watch, time);
    auto& gang = *sample_.add_gangs();
    gang.set_attempt(attempt.value());
    gang.set_scheduled_ns(time.ran.count());
    gang.set_runs(time.has_turn);
    for (const auto& task : watch.tasks.last()) fill_task(task, *gang.add_tasks());
  }
}

void Sampling::refresh_usage() {
  count_traffic();
  if (parts_.cgroups == nullptr) return;
  if (!usage_file_) {
    auto opened = open_file(parts_.cgroups->root() + "/cpu.stat", O_RDONLY);
    if (!opened) return;
    usage_file_ = *std::move(opened);
  }
  std::array<char, 1'024> text;
  const ssize_t got = pread(usage_file_.get(), text.data(), text.size(), 0);
  if (got <= 0) return;
  const std::string_view read(text.data(), static_cast<std::size_t>(got));
  if (const auto cpu = monitor::parse_cpu_stat(read)) cpu_ = *cpu;
}

monitor::NodeTotals Sampling::totals(Duration age) {
  keep_up();
  const TimePoint now = parts_.clock.now();
  if (now - usage_read_ >= age) {
    usage_read_ = now;
    refresh_usage();
  }
  const SwitchCounters& counters = parts_.switcher.counters();
  monitor::NodeTotals totals;
  totals.switches = counters.switches.load(std::memory_order_relaxed);
  totals.late = counters.late.load(std::memory_order_relaxed);
  totals.lost = Duration(counters.lost_ns.load(std::memory_order_relaxed));
  totals.busy = counters.busy.read(now);
  totals.phases = phases_;
  totals.user = cpu_.user;
  totals.system = cpu_.system;
  totals.traffic = ended_traffic_;
  for (const auto& [attempt, traffic] : traffic_) add(totals.traffic, traffic);
  return totals;
}

}  // namespace score::node
