// Samples are totals, so the loss of one does no harm. Switches must not be lost: their phases are
// counted every second, and while samples are watched each switch is sent once.
//
// The cost of a sample is its wake-up. So with a period below kTogether the switcher's thread takes
// snapshots where it is awake anyway (snapshots.hpp). Once or twice a second, in the same wake-up
// as the heartbeat, the main thread reads everything and sends the samples since the last time
// together.
#include "scored/node/observe/sampling.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "scored/node/attempts/process_tree.hpp"
#include "scored/node/observe/sample_fill.hpp"

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

constexpr Duration kLatePause = std::chrono::minutes{1};  // between two log lines about late
                                                          // switches
constexpr Duration kLookUpPeriod = std::chrono::seconds{1};
constexpr Duration kTotalsPeriod = std::chrono::milliseconds{950};  // a second of samples
constexpr Duration kLastSwitches = std::chrono::seconds{1};
constexpr Duration kShortestPeriod = std::chrono::milliseconds{100};
constexpr Duration kBeforeDocument = std::chrono::milliseconds{15};
constexpr Duration kLongestPeriod = std::chrono::seconds{10};
static_assert(limits::kWatchedHeartbeatPeriod % monitor::kTogether == Duration{0} &&
                  limits::kWatchedHeartbeatPeriod % monitor::kTogetherOfMany == Duration{0},
              "they wake up together");
// A larger number would keep the switcher's thread busy for a tenth of a millisecond and longer.
constexpr std::size_t kMostProcesses = 32;       // processes
constexpr std::size_t kMaxSentSwitches = 4'096;  // in one sample
constexpr std::size_t kMostOfAScrape = 100;      // switches of the last second before a scrape
// The main thread leaves records in the switcher's ring until there are this many. So nothing is
// lost if as many are added before the next check.
constexpr std::uint64_t kMostWaiting = SwitchTrace::kEntries / 4;
static_assert(kMostWaiting + limits::kHeartbeatPeriod / limits::kMinQuantum <
              SwitchTrace::kEntries * 3 / 4);
constexpr int kMostReadings = 3;  // per gang, if it is switched during the reading
constexpr std::size_t kMaxListBytes = 64 * limits::kKiB;

// The limit must allow three descriptors per process, which are kept open.
void raise_descriptor_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// Reads the pids in cgroup.procs, one number per line.
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

}  // namespace

Sampling::Sampling(Parts parts) : parts_(parts), late_(kLatePause) {}

void Sampling::watch(const wire::WatchNode& message) {
  if (message.once()) send_sample(false);
  const Duration wanted(message.period_ns());
  const Duration period =
      wanted <= Duration{0} ? Duration{0} : std::clamp(wanted, kShortestPeriod, kLongestPeriod);
  if (message.once() && wanted <= Duration{0}) return;
  const bool is_of_many = Duration(message.together_ns()) >= monitor::kTogetherOfMany;
  together_ = is_of_many ? monitor::kTogetherOfMany : monitor::kTogether;
  wants_peers_ = message.peers();
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
  reported_filled_ = Duration{0};
  watches_.clear();
  next_look_up_ = {};
  pending_ = {};
  if (std::exchange(snapshots_, nullptr)) parts_.switcher.set_observer(nullptr);
}

void Sampling::tasks_changed() {
  const bool waits_long = snapshots_ && together_ > monitor::kTogether;
  if (waits_long && parts_.attempts.running_count() != watches_.size()) send_sample(true);
}

asio::awaitable<void> Sampling::run(std::uint64_t generation) {
  keep_up();
  pending_.clear();
  while (generation == generation_) {
    send_sample(true);
    co_await parts_.clock.sleep_until(next_sample(parts_.clock.now()));
  }
}

// Returns when the next sample is due. A sample is taken alone shortly before the head makes a
// document. If the head replays samples later, it is taken together with the heartbeat, which is
// then sent at whole seconds of this clock.
TimePoint Sampling::next_sample(TimePoint now) const {
  if (snapshots_) return TimePoint((now.time_since_epoch() / together_ + 1) * together_);
  const Duration shift = parts_.agent.clock().offset() + kBeforeDocument;
  const auto passed = now.time_since_epoch() + shift;
  return TimePoint((passed / period_ + 1) * period_ - shift);
}

// Records of switches that were on time can wait, because they are in the other thread's caches.
void Sampling::find_late_switches() {
  const auto late = parts_.switcher.counters().late.load(std::memory_order_relaxed);
  const bool has_late = std::exchange(late_seen_, late) != late;
  if (has_late || parts_.switcher.trace().written() - seen_ > kMostWaiting) keep_up();
}

void Sampling::keep_up() {
  const auto extract = parts_.switcher.trace().read_new(seen_, SwitchTrace::kEntries * 3 / 4);
  lost_ += extract.lost;
  for (const SwitchRecord& record : extract.records) {
    if (!record.is_switch()) continue;
    const auto sample = to_sample(record);
    for (std::size_t i = 0; i < monitor::kSwitchPhases; ++i) {
      const auto length = length_of(sample, static_cast<monitor::SwitchPhase>(i));
      if (length) phases_[i].add(*length);
    }
    late_.note_switches(1);
    if (is_late(record.woke, record.slice)) late_.add({record.woke, record});
    if (period_ > Duration{0} && pending_.size() < kMaxSentSwitches) pending_.push_back(record);
  }
}

// ---- One sample ---------------------------------------------------------------------------------

void Sampling::send_sample(bool with_tasks) {
  if (!parts_.head.is_greeted()) return;
  keep_up();
  const TimePoint now = parts_.clock.now();
  if (with_tasks) {
    read_all();
    send_snapshots(now);
    keep_watching(now);
  }
  begin_sample(now);
  sample_.set_totals_only(!with_tasks);
  if (with_tasks) {
    fill_gangs(now);
    fill_peers(now);
    add_switches(TimePoint::max());
    sample_.set_switches_lost(lost_);
  } else if (period_ == Duration{0}) {
    add_last_switches(now);
  }
  if (!with_tasks || now - totals_sent_ >= kTotalsPeriod) {
    if (with_tasks) totals_sent_ = now;
    auto& out = *sample_.mutable_totals();
    with_tasks ? fill_counts(counts(), out) : fill_totals(totals(), out);
    for (const auto* volume : parts_.attempts.volumes()) *sample_.add_scratch() = *volume;
  }
  send_it();
}

void Sampling::begin_sample(TimePoint taken) {
  sample_.Clear();
  sample_.set_taken_ns((taken + parts_.agent.clock().offset()).time_since_epoch().count());
}

void Sampling::send_it() {
  sample_.SerializeToString(&bytes_);
  parts_.head.send(proto::frame_type<wire::NodeSample>(), bytes_);
}

void Sampling::report_filled() {
  const Duration filled = parts_.switcher.filled();
  if (is_watched() || filled == reported_filled_ || !parts_.head.is_greeted()) return;
  reported_filled_ = filled;
  begin_sample(parts_.clock.now());
  sample_.set_totals_only(true);
  for (const auto& tasks : parts_.attempts.running()) {
    auto& gang = *sample_.add_gangs();
    gang.set_attempt(tasks.attempt.value());
    gang.set_filled_ns(parts_.switcher.filled(tasks.attempt).count());
  }
  send_it();
}

// Adds the switches that were completed by then and have not been sent yet.
void Sampling::add_switches(TimePoint until) {
  const auto later = std::find_if(pending_.begin(), pending_.end(), [&](const auto& record) {
    return record.due + record.done > until;
  });
  for (auto record = pending_.begin(); record != later; ++record) {
    fill_switch(*record, parts_.agent.clock().offset(), *sample_.add_switches());
  }
  pending_.erase(pending_.begin(), later);
}

// Adds switches for a scrape while no samples are watched. Only the head can compute the skew
// between nodes, from all nodes' switches of the same boundaries.
void Sampling::add_last_switches(TimePoint now) {
  std::uint64_t seen = 0;
  const auto last = parts_.switcher.trace().read_new(seen, kMostOfAScrape);
  const TimePoint since = std::max(sent_until_, now - kLastSwitches);
  for (const SwitchRecord& record : last.records) {
    if (record.due <= since || !record.is_switch()) continue;
    fill_switch(record, parts_.agent.clock().offset(), *sample_.add_switches());
    sent_until_ = record.due;
  }
}

monitor::FindProcesses Sampling::finder(const Attempts::RunningTasks& tasks) const {
  if (parts_.cgroups == nullptr) return [pid = tasks.shepherd] { return descendants(pid); };
  const std::string path = parts_.cgroups->tasks_path(tasks.attempt) + "/cgroup.procs";
  auto opened = open_file(path, O_RDONLY);
  if (!opened) return [] { return std::vector<pid_t>(); };
  const auto file = std::make_shared<UniqueFd>(*std::move(opened));
  return [file] { return read_pids(file->get()); };
}

// Detects attempts that began or ended at once, and processes that they started once per
// kLookUpPeriod.
void Sampling::keep_watching(TimePoint now) {
  const bool has_new = parts_.attempts.running_count() != watches_.size();
  if (now >= next_look_up_ || has_new) {
    look_up();
    next_look_up_ = now + kLookUpPeriod;
    read_all();
    choose_snapshots();
    note_totals(now);
  }
  if (!snapshots_) return;
  auto totals = totals_.begin();
  for (const auto& gang : snapshots_->gangs()) {
    Watch& watch = watches_.at(gang.attempt);
    for (std::size_t i = 0; i < watch.tracks.size(); ++i) {
      watch.tracks[i].mark(watch.tasks.last()[i], *totals++);
    }
  }
}

void Sampling::look_up() {
  const auto running = parts_.attempts.running();
  std::erase_if(watches_, [&](const auto& watch) {
    return std::none_of(running.begin(), running.end(),
                        [&](const auto& tasks) { return tasks.attempt == watch.first; });
  });
  for (const auto& tasks : running) {
    const auto found = watches_.find(tasks.attempt);
    if (found != watches_.end()) {
      found->second.tasks.set_pids(tasks.pids);
      found->second.tracks.resize(found->second.tasks.last().size());
      continue;
    }
    Watch made{monitor::TaskWatch({tasks.ranks, tasks.pids}, finder(tasks)), {}, std::nullopt};
    made.tracks.resize(made.tasks.last().size());
    watches_.emplace(tasks.attempt, std::move(made));
  }
  for (auto& [attempt, watch] : watches_) {
    watch.tasks.look_up();
    watch.frozen_at.reset();
  }
}

// ---- Between two samples ------------------------------------------------------------------------

// Chooses none if samples are far apart, or if there are too many processes for a thread that
// switches.
void Sampling::choose_snapshots() {
  std::vector<Snapshots::Gang> gangs;
  std::size_t count = 0;
  for (const auto& [attempt, watch] : watches_) {
    gangs.push_back({attempt, watch.tasks.processes(), parts_.networks.contexts().of(attempt)});
    count += watch.tasks.process_count();
  }
  const bool has_snapshots = period_ < monitor::kTogether && count <= kMostProcesses;
  if (has_snapshots && snapshots_ && snapshots_->gangs() == gangs) return;
  if (!has_snapshots && !snapshots_) return;
  snapshots_ = has_snapshots ? std::make_shared<Snapshots>(period_, std::move(gangs)) : nullptr;
  parts_.switcher.set_observer(snapshots_);
}

// Must be called after read_all().
void Sampling::note_totals(TimePoint now) {
  totals_.clear();
  if (!snapshots_) return;
  const auto used = snapshots_->used();
  for (const auto& gang : snapshots_->gangs()) {
    const auto ran = parts_.switcher.run_time(gang.attempt, now).ran;
    for (std::size_t i = 0; i < gang.processes.size(); ++i) {
      totals_.push_back({used[totals_.size()], ran});
    }
  }
}

// Sends one sample per snapshot, except for one taken just now, because a full sample follows.
void Sampling::send_snapshots(TimePoint now) {
  note_totals(now);
  if (!snapshots_) return;
  auto totals = totals_.begin();
  for (const auto& gang : snapshots_->gangs()) {
    Watch& watch = watches_.at(gang.attempt);
    for (std::size_t i = 0; i < watch.tracks.size(); ++i) {
      watch.tracks[i].expect(watch.tasks.last()[i], *totals++);
    }
  }
  snapshots_->fetch([&](const Snapshot& snapshot) {
    if (now - snapshot.taken < period_ / 2) return;
    begin_sample(snapshot.taken);
    fill_snapshot(snapshot);
    add_switches(snapshot.taken);
    send_it();
  });
}

void Sampling::fill_snapshot(const Snapshot& snapshot) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < snapshot.gangs.size(); ++i) {
    const auto& [attempt, processes, contexts] = snapshots_->gangs()[i];
    const std::size_t begin = std::exchange(first, first + processes.size());
    if (!snapshot.gangs[i].is_there) continue;
    auto& gang = *sample_.add_gangs();
    gang.set_attempt(attempt.value());
    gang.set_scheduled_ns(snapshot.gangs[i].ran.count());
    gang.set_runs(snapshot.gangs[i].has_turn);
    gang.set_filled_ns(snapshot.gangs[i].filled.count());
    gang.set_fills(snapshot.gangs[i].fills);
    auto& tracks = watches_.at(attempt).tracks;
    for (std::size_t t = 0; t < tracks.size(); ++t) {
      fill_task(tracks[t].at(snapshot.gangs[i], snapshot.tasks[begin + t]), *gang.add_tasks());
    }
  }
}

// ---- Totals -------------------------------------------------------------------------------------

namespace {

void add(monitor::Traffic& sum, const monitor::Traffic& part) {
  sum.sent_messages += part.sent_messages;
  sum.received_messages += part.received_messages;
  sum.sent_bytes += part.sent_bytes;
  sum.received_bytes += part.received_bytes;
}

}  // namespace

void Sampling::add_contexts(AttemptId attempt, std::vector<monitor::TaskSample>& tasks) const {
  const auto contexts = parts_.networks.contexts().of(attempt);
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
  for (const AttemptId attempt : parts_.networks.contexts().attempts()) {
    const auto contexts = parts_.networks.contexts().of(attempt);
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

// A gang that was frozen when it was read and has not run or filled since is unchanged. If it was
// frozen during the reading, its tasks would seem to sleep, so it is read again.
void Sampling::read(AttemptId attempt, Watch& watch) {
  for (int tries = 0; tries < kMostReadings; ++tries) {
    const TimePoint begin = parts_.clock.now();
    const auto time = parts_.switcher.run_time(attempt, begin);
    const Extent extent{time.ran, parts_.switcher.filled(attempt)};
    const bool is_frozen = !time.runs && !time.fills;
    if (is_frozen && watch.frozen_at == extent) return;
    watch.frozen_at = is_frozen ? std::optional(extent) : std::nullopt;
    add_contexts(attempt, watch.tasks.read(is_frozen));
    const TimePoint end = parts_.clock.now();
    const auto after = parts_.switcher.run_time(attempt, end);
    const bool ran_on = time.runs ? after.ran - time.ran == end - begin : after.fills;
    if (is_frozen || ran_on) return;
    watch.tasks.distrust();
  }
}

void Sampling::read_all() {
  for (auto& [attempt, watch] : watches_) read(attempt, watch);
}

void Sampling::fill_gangs(TimePoint now) {
  for (auto& [attempt, watch] : watches_) {
    const auto time = parts_.switcher.run_time(attempt, now);
    auto& gang = *sample_.add_gangs();
    gang.set_attempt(attempt.value());
    gang.set_scheduled_ns(time.ran.count());
    gang.set_runs(time.has_turn);
    gang.set_filled_ns(parts_.switcher.filled(attempt).count());
    gang.set_fills(time.fills);
    for (const auto& task : watch.tasks.last()) fill_task(task, *gang.add_tasks());
  }
}

// Must be called after fill_gangs(). It reads every peer of every context, so it runs only on
// request.
void Sampling::fill_peers(TimePoint now) {
  if (!wants_peers_ || now - peers_sent_ < kTotalsPeriod) return;
  peers_sent_ = now;
  for (auto& gang : *sample_.mutable_gangs()) {
    const auto frames = parts_.networks.frames_to_nodes(AttemptId(gang.attempt()));
    gang.mutable_frames_to()->Add(frames.begin(), frames.end());
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

monitor::NodeTotals Sampling::counts() const {
  const SwitchCounters& counters = parts_.switcher.counters();
  monitor::NodeTotals counts;
  counts.switches = counters.switches.load(std::memory_order_relaxed);
  counts.late = counters.late.load(std::memory_order_relaxed);
  counts.overhead = overhead_in(counters);
  counts.busy = counters.busy.read(parts_.clock.now());
  counts.is_whole = false;
  return counts;
}

monitor::NodeTotals Sampling::totals() {
  keep_up();
  refresh_usage();
  monitor::NodeTotals totals = counts();
  totals.is_whole = true;
  totals.phases = phases_;
  totals.user = cpu_.user;
  totals.system = cpu_.system;
  totals.filled = parts_.switcher.filled();
  totals.traffic = ended_traffic_;
  for (const auto& [attempt, traffic] : traffic_) add(totals.traffic, traffic);
  return totals;
}

}  // namespace score::node
