// A program is a list of plans and, for each of their segments, a row of who runs. A step finds the
// row of this moment and makes it true: first everybody who leaves is stopped, then everybody who
// enters goes on, so that never more than one gang has the cores.
//
// A plan comes again with another start whenever the clock estimate moves. Near a boundary that
// would make a job run for some microseconds more than once; so a fresh program that reaches its
// next boundary within kSettle is applied only there.
//
// Between boundaries attempts are looked at whether they need the processor (idle_watch.hpp).
#include "scored/node/switch/switch_follower.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kSettle = std::chrono::microseconds{100};
// A node that lets its tasks send before another has restored mixes what they send with what that
// one puts back, and go-back-N sends all of it again (7 % of the frames). So all go together after
// the guard: as late as this node's own restoring lately took to be done, which tells what the
// others' takes. It is followed at once upwards and slowly downwards, within these bounds.
constexpr Duration kLeastRestore = std::chrono::microseconds{40};
constexpr int kForgetRestore = 16;  // handovers

bool contains(const std::vector<AttemptId>& sorted, AttemptId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

std::vector<char> rows(const gang::SwitchPlan& plan,
                       const std::vector<std::shared_ptr<SwitchSlot>>& slots) {
  std::vector<char> runs;
  runs.reserve(plan.segments.size() * slots.size());
  for (const auto& segment : plan.segments) {
    for (const auto& slot : slots) {
      const bool is_running =
          !contains(plan.managed, slot->attempt) || contains(segment.jobs, slot->attempt);
      runs.push_back(is_running ? 1 : 0);
    }
  }
  return runs;
}

// Who runs in a row, < 0: nobody; nullopt: several.
std::optional<std::ptrdiff_t> only_one(std::span<const char> row) {
  const auto is_running = [](char runs) { return runs != 0; };
  const auto first = std::find_if(row.begin(), row.end(), is_running);
  if (first == row.end()) return -1;
  if (std::find_if(first + 1, row.end(), is_running) != row.end()) return std::nullopt;
  return first - row.begin();
}

std::vector<SwitchProgram::Turn> turns_of(const gang::SwitchPlan& plan,
                                          const std::vector<std::shared_ptr<SwitchSlot>>& slots,
                                          std::span<const char> runs) {
  std::vector<SwitchProgram::Turn> turns;
  const auto is_managed = [&](const auto& slot) { return contains(plan.managed, slot->attempt); };
  if (plan.slice > Duration{0} || !std::all_of(slots.begin(), slots.end(), is_managed)) return {};
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const auto who = only_one(runs.subspan(i * slots.size(), slots.size()));
    if (!who) return {};
    SwitchProgram::Turn turn{.offset = plan.segments[i].offset};
    if (*who >= 0) turn.index = static_cast<std::size_t>(*who);
    if (*who >= 0) turn.slot = slots[turn.index].get();
    if (turns.empty() || turns.back().slot != turn.slot) turns.push_back(turn);
  }
  if (turns.size() > 1 && turns.front().slot == turns.back().slot) turns.erase(turns.begin());
  return turns.size() > 1 ? turns : std::vector<SwitchProgram::Turn>();
}

}  // namespace

SwitchProgram::SwitchProgram(std::vector<gang::SwitchPlan> plans,
                             std::vector<std::shared_ptr<SwitchSlot>> all_slots)
    : slots(std::move(all_slots)), networks(slots.size()) {
  for (auto& plan : plans) {
    auto runs = rows(plan, slots);
    std::vector<char> background;
    for (const auto& slot : slots) background.push_back(contains(plan.background, slot->attempt));
    const WatchPace pace = pace_of(plan);
    auto turns = turns_of(plan, slots, runs);
    parts.push_back(
        {std::move(plan), std::move(runs), std::move(background), pace, std::move(turns)});
  }
}

SwitchProgram* SwitchFollower::take(SwitchProgram* program) {
  is_fresh_ = true;
  next_turn_.part = nullptr;
  for (auto& part : program->parts) {
    for (auto& turn : part.turns) {
      if (turn.slot != nullptr) turn.network = program->networks[turn.index].get();
    }
  }
  return std::exchange(program_, program);
}

[[gnu::hot]] SwitchFollower::Position SwitchFollower::position(TimePoint now) const {
  Position where;
  const auto& parts = program_->parts;
  const auto later = std::find_if(parts.begin(), parts.end(),
                                  [now](const auto& part) { return part.plan.start > now; });
  if (later != parts.end()) where.next = later->plan.start;
  if (later == parts.begin()) return where;
  where.part = &*(later - 1);
  const auto& plan = where.part->plan;
  const auto* running = gang::running_at(plan, now);
  if (running == nullptr) return where;
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    if (&plan.segments[i].jobs == running) {
      where.runs = where.part->runs.data() + i * program_->slots.size();
    }
  }
  if (const auto next = gang::next_switch(plan, now);
      next && (!where.next || next->at < *where.next)) {
    where.next = next->at;
  }
  return where;
}

[[gnu::hot]] std::optional<TimePoint> SwitchFollower::step() {
  if (program_ == nullptr) return std::nullopt;
  const TimePoint woke = clock_.now();
  if (is_plain_turn(woke)) return take_turn(woke);
  if (is_fresh_ || (awaited_ && woke >= *awaited_)) follow(woke);
  std::optional<TimePoint> next = awaited_;
  const auto sooner = [&next](std::optional<TimePoint> other) {
    if (other && (!next || *other < *next)) next = other;
  };
  if (uses_barriers_) sooner(attend(woke));
  sooner(look(woke));
  if (program_->glances) sooner(program_->glances->look(clock_.now(), awaited_, program_->slots));
  return next;
}

[[gnu::hot]] void SwitchFollower::follow(TimePoint woke) {
  const bool is_due = awaited_ && woke >= *awaited_;
  const TimePoint due = is_due ? *awaited_ : woke;
  const Position where = position(woke);
  awaited_ = where.next;
  const bool settles = is_fresh_ && where.next && *where.next - woke < kSettle;
  is_fresh_ = false;
  if (settles) return;
  is_due_ = is_due;
  next_turn_.part = nullptr;
  if (apply(where, due, woke) == 0) expect_turn(where.part, woke);
}

namespace {

bool is_managed(const SwitchSlot& slot, const SwitchProgram::Part* part) {
  return part != nullptr && contains(part->plan.managed, slot.attempt);
}

}  // namespace

// Who leaves; and where every boundary is a switch, who runs on.
[[gnu::hot]] bool SwitchFollower::must_stop(const SwitchSlot& slot, const Position& where,
                                            bool stays, TimePoint due) {
  if (slot.stopped) return false;
  if (!stays) return true;
  return is_managed(slot, where.part) && gang::restarts_at(where.part->plan, due);
}

[[gnu::hot]] bool SwitchFollower::enters(std::size_t slot, const Position& where) const {
  const SwitchSlot& entering = *program_->slots[slot];
  return entering.stopped && entering.waits_for == 0 && !entering.watch.is_held() &&
         (where.runs == nullptr || where.runs[slot] != 0);
}

// Channels go to those who run from now on: who enters, and who opened its network while it runs.
// Under no plan everybody runs, and nobody takes anything from another.
[[gnu::hot]] void SwitchFollower::switch_networks(const Position& where, SwitchRecord& record) {
  if (where.runs == nullptr) return;
  const auto& networks = program_->networks;
  const auto takes = [&](std::size_t i) {
    return networks[i] && where.runs[i] != 0 && program_->slots[i]->waits_for == 0 &&
           !networks[i]->holds_channel();
  };
  bool is_any = false;
  bool must_wait = false;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (!takes(i)) continue;
    is_any = true;
    must_wait = must_wait || (enters(i, where) && networks[i]->follows_another());
  }
  if (!is_any) return;
  const Duration guard{clock_.guard_ns.load(std::memory_order_relaxed)};
  if (must_wait) {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      // What is there already need not be done after the guard.
      if (takes(i)) networks[i]->empty_channel(networks, counters_.channels);
    }
    clock_.sleep_until(record.due + record.stopped + guard);
  }
  record.guarded = clock_.now() - record.due;
  std::uint64_t taken = 0;  // by slot, of the first 64: more only lose what was saved of them
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (!takes(i)) continue;
    networks[i]->take_channel(networks, counters_.channels);
    if (i < 64) taken |= std::uint64_t{1} << i;
  }
  record.saved = clock_.now() - record.due;
  for (std::size_t i = 0; i < networks.size() && i < 64; ++i) {
    if ((taken >> i & 1) != 0) networks[i]->restore(counters_.channels);
  }
  record.restored = clock_.now() - record.due;
  if (!must_wait) return;
  restore_time_ = std::max(restore_time_ - restore_time_ / kForgetRestore, record.restored - guard);
  restore_time_ = std::clamp(restore_time_, kLeastRestore, kMostRestore);
  clock_.sleep_until(record.due + guard + restore_time_);
}

// Gives how many could not be stopped or continued.
[[gnu::hot]] std::uint64_t SwitchFollower::apply(const Position& where, TimePoint due,
                                                 TimePoint woke) {
  SwitchRecord record;
  has_switched_ = false;
  assign_background(where, woke);
  std::uint64_t failed = stop_leaving(where, due, woke, record);
  const TimePoint stopped = clock_.now();
  record.due = due;
  record.stopped = record.guarded = record.saved = record.restored = stopped - due;
  record.woke = woke - due;
  if (where.part != nullptr) record.epoch = where.part->plan.epoch;
  if (uses_barriers_) drop_waiting(where);
  if (uses_barriers_ && meets_) call_meetings(where, due, record);
  switch_networks(where, record);
  failed += let_entering_go(where, stopped, record);
  record.done = clock_.now() - due;
  count(counters_.failed, failed);
  const auto waits = [](const auto& slot) { return slot->waits_for != 0; };
  if (uses_barriers_ && std::any_of(program_->slots.begin(), program_->slots.end(), waits)) {
    open_record_ = record;
  } else if (record.left_count + record.entered_count > 0) {
    note(record);
  }
  watch(woke, stopped);
  return failed;
}

[[gnu::hot]] void SwitchFollower::assign_background(const Position& where, TimePoint woke) {
  pace_ = where.part != nullptr ? where.part->pace : WatchPace{};
  const auto& slots = program_->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SlotWatch& watch = slots[i]->watch;
    const bool was_idle = watch.is_idle();
    watch.set_background(where.part != nullptr && where.part->background[i] != 0, woke);
    activity_changed_ |= was_idle != watch.is_idle();
  }
}

namespace {

void list(const SwitchSlot& slot, std::array<AttemptId, SwitchRecord::kMaxListed>& ids,
          std::uint32_t& count) {
  if (count < SwitchRecord::kMaxListed) ids[count] = slot.attempt;
  ++count;
}

}  // namespace

void SwitchFollower::list_entered(const SwitchSlot& slot, SwitchRecord& record) {
  list(slot, record.entered, record.entered_count);
}

// Gives how many could not be stopped.
[[gnu::hot]] std::uint64_t SwitchFollower::stop_leaving(const Position& where, TimePoint due,
                                                        TimePoint woke, SwitchRecord& record) {
  std::uint64_t failed = 0;
  const auto& slots = program_->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SwitchSlot& slot = *slots[i];
    const bool runs = where.runs == nullptr || where.runs[i] != 0;
    const bool stops = must_stop(slot, where, runs && !slot.watch.is_held(), due);
    const bool is_background = slot.watch.is_background();
    if (stops) failed += stop(slot, woke);
    // Who is new and stopped before its first turn does not leave: it has never been there.
    const bool loses_turn = slot.has_turn && (stops || !runs || is_background);
    if (!loses_turn) continue;
    slot.has_turn.store(runs && !is_background, std::memory_order_relaxed);
    list(slot, record.left, record.left_count);
  }
  return failed;
}

[[gnu::hot]] std::uint64_t SwitchFollower::let_entering_go(const Position& where, TimePoint stopped,
                                                           SwitchRecord& record) {
  std::uint64_t failed = 0;
  bool is_busy = false;
  const TimePoint now = record.due + record.restored > stopped ? clock_.now() : stopped;
  const auto& slots = program_->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SwitchSlot& slot = *slots[i];
    const bool runs = where.runs == nullptr || where.runs[i] != 0;
    is_busy = is_busy || !slot.stopped || runs;
    const bool goes = enters(i, where);
    if (slot.waits_for != 0) continue;
    if (goes) failed += let_go(slot, program_->networks[i].get(), stopped, now);
    // Who is new and no plan knows yet runs, but has no turn.
    const bool has_turn =
        runs && !slot.watch.is_background() && (goes || is_managed(slot, where.part));
    if (has_turn && (goes || !slot.has_turn)) list(slot, record.entered, record.entered_count);
    if (has_turn) slot.has_turn.store(true, std::memory_order_relaxed);
  }
  if (is_busy) {
    counters_.busy.start(stopped);
  } else {
    counters_.busy.stop(stopped);
  }
  return failed;
}

// Its clock stops at `at`, and before its processes do: who reads them and sees it run before and
// afterwards has read none that was stopped. Gives 1 if it could not be stopped.
[[gnu::hot]] std::uint64_t SwitchFollower::stop(SwitchSlot& slot, TimePoint at) {
  const bool ran = slot.clock.is_running();
  slot.clock.stop(at);
  slot.stopped = slot.stop() == 0;
  has_switched_ = true;
  if (!slot.stopped) {
    if (ran) slot.clock.start(at);
    return 1;
  }
  slot.stopped_at = at;
  return 0;
}

// Its clock starts at `at`. Gives 1 if it could not be continued.
[[gnu::hot]] std::uint64_t SwitchFollower::let_go(SwitchSlot& slot, ChannelUser* network,
                                                  TimePoint at, TimePoint now) {
  if (network != nullptr) network->add_stopped(now - slot.stopped_at);
  slot.stopped = slot.go() != 0;
  has_switched_ = true;
  if (!slot.stopped) slot.clock.start(at);
  slot.left_at = 0;
  return slot.stopped ? 1 : 0;
}

[[gnu::hot]] void SwitchFollower::note(const SwitchRecord& record) {
  trace_.put(record);
  // Who is new and runs already is only recorded.
  if (has_switched_) count(counters_.switches, std::uint64_t{1});
  if (record.entered_count > 0) count(counters_.lost_ns, record.done.count());
  if (record.woke > late_after_) count(counters_.late, std::uint64_t{1});
}

// ---- idleness ---------------------------------------------------------------------------------

// After the switch, so that nobody waits for it.
[[gnu::hot]] void SwitchFollower::watch(TimePoint woke, TimePoint stopped) {
  for (const auto& slot : program_->slots) {
    const bool was_idle = slot->watch.is_idle();
    if (slot->stopped) {
      slot->watch.stops(woke, pace_);
    } else {
      slot->watch.goes_on(stopped);
    }
    activity_changed_ |= was_idle != slot->watch.is_idle();
  }
}

[[gnu::hot]] std::optional<TimePoint> SwitchFollower::next_look() const {
  std::optional<TimePoint> next;
  for (const auto& slot : program_->slots) {
    const auto due = slot->watch.next_look(pace_);
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

// Those in the background are looked at together: one wake-up for all of them.
[[gnu::hot]] std::optional<TimePoint> SwitchFollower::look(TimePoint woke) {
  const auto next = next_look();
  if (!next || *next > woke) return next;
  for (const auto& slot : program_->slots) {
    const bool joins = slot->watch.is_background() && !slot->watch.is_held();
    const auto due = slot->watch.next_look(pace_);
    if (!due || *due > woke + (joins ? pace_.background / 2 : Duration{0})) continue;
    const bool was_idle = slot->watch.is_idle();
    slot->watch.look(woke, pace_);
    obey_watch(*slot, woke);
    activity_changed_ |= was_idle != slot->watch.is_idle();
  }
  return next_look();
}

void SwitchFollower::obey_watch(SwitchSlot& slot, TimePoint now) {
  if (!slot.watch.is_background() || slot.stopped == slot.watch.is_held()) return;
  if (slot.watch.is_held()) {
    slot.clock.stop(now);
    slot.stopped = slot.target->stop() == 0;
    if (!slot.stopped) slot.clock.start(now);
    slot.stopped_at = now;
    return;
  }
  slot.stopped = slot.target->go() != 0;
  if (!slot.stopped) slot.clock.start(now);
  slot.watch.goes_on(now);
}

void SwitchFollower::release() {
  if (program_ == nullptr) return;
  for (const auto& slot : program_->slots) {
    slot->waits_for = 0;
    if (slot->stopped) slot->stopped = slot->target->go() != 0;
  }
}

}  // namespace score::node
