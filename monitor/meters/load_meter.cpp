#include "monitor/meters/load_meter.hpp"

#include <algorithm>
#include <utility>

namespace score::monitor {

namespace {

// Loads over less scheduled time than this depend more on the clocks than on the task.
constexpr Duration kLeastScheduled = 2ms;
constexpr Duration kTrafficWindow = 1s;
constexpr double kMostCores = 4'096;  // a broken total is shown as no more than this
constexpr Duration kPmWindow = 1s;
constexpr Duration kFillWindow = 1s;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A total that went back belongs to a different process, so it counts as no growth.
double grown(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

double cores(Duration now, Duration before, double period) {
  if (period <= 0 || now <= before) return 0;
  return std::min(seconds(now - before) / period, kMostCores);
}

TrafficRate rate(const Traffic& now, const Traffic& before, double period) {
  if (period <= 0) return {};
  return {grown(now.sent_messages, before.sent_messages) / period,
          grown(now.received_messages, before.received_messages) / period,
          grown(now.sent_bytes, before.sent_bytes) / period,
          grown(now.received_bytes, before.received_bytes) / period};
}

// Weighs the new value with `part` and the old one with the rest.
TrafficRate mix(const TrafficRate& was, const TrafficRate& is, double part) {
  const auto one = [part](double before, double now) { return before + part * (now - before); };
  return {one(was.sent_messages, is.sent_messages),
          one(was.received_messages, is.received_messages), one(was.sent_bytes, is.sent_bytes),
          one(was.received_bytes, is.received_bytes)};
}

void add(TrafficRate& sum, const TrafficRate& part) {
  sum.sent_messages += part.sent_messages;
  sum.received_messages += part.received_messages;
  sum.sent_bytes += part.sent_bytes;
  sum.received_bytes += part.received_bytes;
}

}  // namespace

void LoadMeter::forget() {
  *this = LoadMeter();
}

void LoadMeter::Filling::add(double more_used, double more_scheduled, double real) {
  const double part = std::max(0.0, 1 - real / seconds(kFillWindow));
  used = part * used + more_used;
  scheduled = part * scheduled + more_scheduled;
}

double LoadMeter::Filling::share() const {
  return scheduled > 0 ? std::min(used / scheduled, kMostCores) : 0;
}

// The waiting of a task that fills does not count for its own slices. It waits for the processor
// because of its priority, and for messages of tasks that fill too.
TaskLoad LoadMeter::load_of(const TaskSample& now, Kept* before, const Turns& turns) {
  const Duration scheduled = turns.scheduled;
  TaskLoad load;
  load.rank = now.rank;
  load.pid = now.pid;
  const bool is_filling = turns.now.fills && now.state == TaskState::Running;
  load.state = is_filling ? TaskState::Fills : now.state;
  load.memory = now.memory;
  load.processes = now.processes;
  load.has_rates = now.state == TaskState::Ended;
  const double real = seconds(period_);
  if (real > 0) load.scheduled = std::clamp(seconds(scheduled) / real, 0.0, 1.0);
  if (now.pm) load.traffic = TrafficRate();
  if (now.pm) load.pm_wait = before != nullptr ? before->pm_wait : 0;
  if (before == nullptr || before->sample.pid != now.pid) return load;
  const TaskSample& last = before->sample;
  // The values of the last slice are kept while a gang is frozen.
  load.user = before->user;
  load.system = before->system;
  load.waited = before->waited;
  load.switches = before->switches;
  load.has_rates |= before->has_rates || scheduled >= kLeastScheduled;
  if (scheduled >= kLeastScheduled) {
    const double ran = seconds(scheduled);
    load.user = turns.own * cores(now.user, last.user, ran);
    load.system = turns.own * cores(now.system, last.system, ran);
    if (!turns.filled_too) load.waited = cores(now.waited, last.waited, ran);
    load.switches = grown(now.switches, last.switches) / ran;
  }
  const double used = cores(now.user, last.user, 1) + cores(now.system, last.system, 1);
  before->filling.add((1 - turns.own) * used, seconds(scheduled), real);
  load.filled = before->filling.share();
  if (now.pm && last.pm) {
    // A gang sends only in its slices, and half of the shorter periods have none, so traffic is
    // averaged.
    const auto measured = rate(now.pm->traffic, last.pm->traffic, real);
    const double part = std::min(1.0, real / seconds(kTrafficWindow));
    load.traffic = mix(before->traffic.value_or(measured), measured, part);
    before->traffic = load.traffic;
    // Only samples of a running task are used; the weight of older ones decreases.
    const double weight =
        turns.now.fills ? 0 : std::min(1.0, seconds(scheduled) / seconds(kPmWindow));
    load.pm_wait = *load.pm_wait + weight * ((now.pm->waits ? 1.0 : 0.0) - *load.pm_wait);
  }
  return load;
}

// A node sends its tasks in the same order each time, so it is usually the next one.
LoadMeter::Kept* LoadMeter::find(AttemptId attempt, Rank rank) {
  const auto is_it = [&](const Kept& kept) {
    return kept.attempt == attempt && kept.sample.rank == rank;
  };
  if (next_ >= last_.size() || !is_it(last_[next_])) {
    const auto place = std::lower_bound(
        last_.begin(), last_.end(), std::pair(attempt, rank),
        [](const Kept& kept, const auto& wanted) { return key_of(kept) < wanted; });
    if (place == last_.end() || !is_it(*place)) return nullptr;
    next_ = static_cast<std::size_t>(place - last_.begin());
  }
  return &last_[next_++];
}

LoadMeter::Turns LoadMeter::turns_of(const GangSample& gang) {
  Turns turns{{gang.attempt, gang.scheduled, gang.filled, gang.fills}};
  for (const Totals& totals : totals_) {
    if (totals.attempt != gang.attempt) continue;
    // A sample between two boundaries may lack the time filled since the last boundary.
    turns.now.filled = std::max(gang.filled, totals.filled);
    turns.scheduled = gang.scheduled - totals.scheduled;
    turns.filled = turns.now.filled - totals.filled;
    turns.own = own_part(gang, turns.filled);
    turns.filled_too = turns.filled > Duration(0) || gang.fills || totals.fills;
  }
  return turns;
}

// The filled time of the gang is known, but not that of each task.
double LoadMeter::own_part(const GangSample& gang, Duration filled) {
  if (filled <= Duration(0)) return 1;
  double used = 0;
  const std::size_t next = next_;
  for (const TaskSample& task : gang.tasks) {
    const Kept* known = find(gang.attempt, task.rank);
    if (known == nullptr || known->sample.pid != task.pid) continue;
    used += seconds(std::max(task.user - known->sample.user, Duration(0)));
    used += seconds(std::max(task.system - known->sample.system, Duration(0)));
  }
  next_ = next;
  return used > seconds(filled) ? 1 - seconds(filled) / used : 0;
}

void LoadMeter::add_task(AttemptId attempt, const TaskSample& task, const Turns& turns) {
  Kept* known = find(attempt, task.rank);
  TaskLoad load = load_of(task, known, turns);
  load.attempt = attempt;
  if (known != nullptr && period_ > Duration(0)) {
    load_.user += cores(task.user, known->sample.user, seconds(period_));
    load_.system += cores(task.system, known->sample.system, seconds(period_));
  }
  if (load.traffic) {
    if (!load_.traffic) load_.traffic = TrafficRate();
    add(*load_.traffic, *load.traffic);
  }
  new_.push_back({attempt, task, load.pm_wait.value_or(0), load.user, load.system, load.waited,
                  load.switches, load.has_rates,
                  known != nullptr && task.pm ? known->traffic : std::nullopt,
                  known != nullptr ? known->filling : Filling()});
  load_.tasks.push_back(std::move(load));
}

void LoadMeter::feed(const NodeSample& sample) {
  if (has_sample_ && sample.taken <= load_.taken) return;
  period_ = has_sample_ ? sample.taken - load_.taken : Duration(0);
  load_.taken = sample.taken;
  load_.user = load_.system = load_.filled = 0;
  load_.traffic.reset();
  load_.tasks.clear();
  new_.clear();
  new_totals_.clear();
  for (const GangSample& gang : sample.gangs) {
    const Turns turns = turns_of(gang);
    new_totals_.push_back(turns.now);
    load_.filled += cores(turns.filled, Duration(0), seconds(period_));
    for (const TaskSample& task : gang.tasks) add_task(gang.attempt, task, turns);
  }
  const auto by_key = [](const Kept& a, const Kept& b) { return key_of(a) < key_of(b); };
  if (!std::is_sorted(new_.begin(), new_.end(), by_key)) {
    std::sort(new_.begin(), new_.end(), by_key);
  }
  last_.swap(new_);
  next_ = 0;
  totals_.swap(new_totals_);
  has_sample_ = true;
}

}  // namespace score::monitor
