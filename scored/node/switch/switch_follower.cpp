// A program is a list of plans and, for each of their segments, a row of the attempts that run. A
// step finds the row of this moment and applies it. First all attempts that leave are stopped, then
// all that enter are continued, so that at most one gang has the cores.
//
// A plan arrives again with a different start whenever the clock estimate moves. Near a boundary
// that would let a job run twice for some microseconds. So a fresh program that reaches its next
// boundary within kSettle is applied only there.
#include "scored/node/switch/switch_follower.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr Duration kSettle = std::chrono::microseconds{100};

std::optional<TimePoint> sooner(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  return b && (!a || *b < *a) ? b : a;
}

// Returns true for an attempt that leaves and, if every boundary is a switch, for one that stays.
[[gnu::hot]] bool must_stop(const SwitchEntry& entry, const SwitchPosition& where, Role next,
                            TimePoint due) {
  if (entry.is_stopped() || next == Role::Fills) return false;
  if (next == Role::Stopped) return true;
  return entry.role == Role::Runs && is_managed(entry, where.part) &&
         gang::restarts_at(where.part->plan, due);
}

}  // namespace

SwitchProgram* SwitchFollower::take(SwitchProgram* program) {
  is_fresh_ = true;
  fast_.cancel();
  for (auto& part : program->parts) {
    for (auto& turn : part.turns) {
      if (turn.entry != nullptr) turn.network = program->networks[turn.index].get();
    }
  }
  return std::exchange(program_, program);
}

[[gnu::hot]] std::optional<TimePoint> SwitchFollower::step() {
  if (program_ == nullptr) return std::nullopt;
  const TimePoint woke = clock_.now();
  if (fast_.fits(woke)) return observe(step_fast(woke));
  if (is_fresh_ || (awaited_ && woke >= *awaited_)) follow(woke);
  std::optional<TimePoint> next = awaited_;
  if (uses_barriers_) next = sooner(next, meetings_.attend(*program_, woke));
  return observe(sooner(next, idle_checks_.check(program_->entries, woke)));
}

// If an attempt could not be stopped or continued, the next boundary corrects that, outside the
// fast path.
[[gnu::hot]] std::optional<TimePoint> SwitchFollower::step_fast(TimePoint woke) {
  const FastSwitch::Taken taken = fast_.take(woke);
  if (taken.failed != 0) {
    count(counters_.failed, taken.failed);
    fast_.cancel();
    awaited_ = position_at(*program_, woke).next;
    idle_checks_.watch(program_->entries, woke, taken.stopped);
    return sooner(awaited_, idle_checks_.check(program_->entries, woke));
  }
  awaited_ = fast_.expect_following();
  return sooner(awaited_, idle_checks_.watch_turn(taken.leaves, taken.enters, woke, taken.stopped));
}

[[gnu::hot]] std::optional<TimePoint> SwitchFollower::observe(std::optional<TimePoint> next) {
  if (!program_->observer) return next;
  return sooner(next, program_->observer->observe(clock_.now(), awaited_, program_->entries));
}

[[gnu::hot]] void SwitchFollower::follow(TimePoint woke) {
  const bool is_due = awaited_ && woke >= *awaited_;
  const TimePoint due = is_due ? *awaited_ : woke;
  SwitchPosition where = position_at(*program_, woke);
  if (where.fills != nullptr && !leaves_time(*program_, where)) where.fills = nullptr;
  awaited_ = where.next;
  const bool settles = is_fresh_ && where.next && *where.next - woke < kSettle;
  is_fresh_ = false;
  if (settles) return;
  is_due_ = is_due;
  fast_.cancel();
  const bool all_done = apply(where, due, woke) == 0;
  if (!all_done || uses_barriers_ || where.part == nullptr) return;
  if (const auto next = fast_.expect(*program_, *where.part, woke)) awaited_ = next;
}

// Returns how many attempts could not be stopped or continued.
[[gnu::hot]] std::uint64_t SwitchFollower::apply(const SwitchPosition& where, TimePoint due,
                                                 TimePoint woke) {
  SwitchRecord record;
  const bool was_busy = counters_.busy.is_running();
  control_.begin();
  idle_checks_.assign_background(where.part, program_->entries, woke);
  std::uint64_t failed = stop_leaving(where, due, woke, record);
  const TimePoint stopped = clock_.now();
  record.due = due;
  record.stopped = record.guarded = record.saved = record.restored = stopped - due;
  record.woke = woke - due;
  if (where.next) record.slice = *where.next - due;
  if (where.part != nullptr) record.epoch = where.part->plan.epoch;
  if (uses_barriers_) meetings_.drop_waiting(*program_, where);
  if (uses_barriers_ && is_due_) meetings_.call(*program_, where, due, record);
  handover_.hand_over(*program_, where, record);
  failed += let_entering_go(where, stopped, record);
  record.done = clock_.now() - due;
  count(counters_.failed, failed);
  const bool is_open = uses_barriers_ && meetings_.keep(*program_, record);
  // A job that ends in its turn is not recorded as leaving, so its end is.
  const bool is_news = record.is_switch() || was_busy != (record.busy != 0);
  if (!is_open && is_news) control_.note(record);
  idle_checks_.watch(program_->entries, woke, stopped);
  account(record, woke, stopped);
  return failed;
}

// This is called after the switch, because reading takes time.
[[gnu::hot]] void SwitchFollower::account(const SwitchRecord& record, TimePoint woke,
                                          TimePoint stopped) {
  bool has_fillers = false;
  const auto& entries = program_->entries;
  for (const auto& entry : entries) {
    const bool fills = entry->role == Role::Fills;
    has_fillers = has_fillers || fills;
    if (fills == entry->account.fills()) continue;
    const Duration used = entry->watch.used_at(entry->role == Role::Runs ? stopped : woke);
    if (fills) {
      entry->account.start(used);
    } else {
      entry->watch.skip(entry->account.stop(used), entry->is_stopped());
    }
  }
  if (!has_fillers || record.entered_count == 0) return;
  for (const auto& entry : entries) {
    if (entry->role == Role::Runs) entry->watch.note_fillers();
  }
}

[[gnu::hot]] std::uint64_t SwitchFollower::stop_leaving(const SwitchPosition& where, TimePoint due,
                                                        TimePoint woke, SwitchRecord& record) {
  std::uint64_t failed = 0;
  const auto& entries = program_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    SwitchEntry& entry = *entries[i];
    const bool runs = where.lets_run(i);
    const Role next = role_at(*program_, i, where);
    const bool stops = must_stop(entry, where, next, due);
    const bool is_background = entry.watch.is_background();
    if (stops) failed += control_.stop(entry, woke);
    if (next == Role::Fills && entry.role == Role::Runs) failed += control_.lower(entry, woke);
    // A new attempt that is stopped before its first turn does not count as leaving.
    const bool loses_turn = entry.has_turn && (stops || !runs || is_background);
    if (!loses_turn) continue;
    entry.has_turn.store(runs && !is_background, std::memory_order_relaxed);
    record.add_left(entry.attempt);
  }
  return failed;
}

[[gnu::hot]] std::uint64_t SwitchFollower::let_entering_go(const SwitchPosition& where,
                                                           TimePoint stopped,
                                                           SwitchRecord& record) {
  std::uint64_t failed = 0;
  bool is_busy = false;
  const TimePoint now = record.due + record.restored > stopped ? clock_.now() : stopped;
  const auto& entries = program_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    SwitchEntry& entry = *entries[i];
    const bool runs = where.lets_run(i);
    is_busy = is_busy || entry.role == Role::Runs || runs;
    const bool goes = enters(*program_, i, where);
    if (entry.waits_for != 0) continue;
    if (goes) failed += control_.resume(entry, program_->networks[i].get(), stopped, now);
    // A new attempt that no plan knows yet is running, but has no turn.
    const bool has_turn =
        runs && !entry.watch.is_background() && (goes || is_managed(entry, where.part));
    if (has_turn && (goes || !entry.has_turn)) record.add_entered(entry.attempt);
    if (has_turn) entry.has_turn.store(true, std::memory_order_relaxed);
  }
  if (is_busy) {
    record.busy = 1;
    counters_.busy.start(stopped);
  } else {
    counters_.busy.stop(stopped);
  }
  return failed + (where.fills != nullptr ? let_fill(where, record) : 0);
}

// This comes last, so that the attempts in turn do not wait for it.
[[gnu::hot]] std::uint64_t SwitchFollower::let_fill(const SwitchPosition& where,
                                                    SwitchRecord& record) {
  std::uint64_t failed = 0;
  const auto& entries = program_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    SwitchEntry& entry = *entries[i];
    const bool fills = entry.is_stopped() && role_at(*program_, i, where) == Role::Fills;
    if (fills) failed += control_.let_fill(entry, program_->networks[i].get(), clock_.now());
    if (entry.role == Role::Fills) record.add_filling(entry.attempt);
  }
  return failed;
}

void SwitchFollower::release() {
  if (program_ == nullptr) return;
  for (const auto& entry : program_->entries) {
    entry->waits_for = 0;
    const int low = entry->set_low(false);
    if (entry->is_stopped() && entry->target->go() != 0) continue;
    entry->role = low != 0 ? Role::Fills : Role::Runs;
  }
}

}  // namespace score::node
