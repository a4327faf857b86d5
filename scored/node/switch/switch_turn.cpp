// The short way through a switch: nearly always one attempt follows another that has the node to
// itself, in the same order cycle after cycle. Then who enters, and when, is known beforehand, and
// only these two are touched. Whatever else there is to do goes through follow(), which does the
// same for these two: a turn that is not taken here is taken there.
#include "scored/node/switch/switch_follower.hpp"

#include <algorithm>

namespace score::node {

namespace {

using Turns = std::vector<SwitchProgram::Turn>;

std::size_t before(const Turns& turns, std::size_t turn) {
  return turn == 0 ? turns.size() - 1 : turn - 1;
}

std::size_t after(const Turns& turns, std::size_t turn) {
  return turn + 1 == turns.size() ? 0 : turn + 1;
}

// How long the turn is.
Duration length(const SwitchProgram::Part& part, std::size_t turn) {
  const Duration next = part.turns[after(part.turns, turn)].offset;
  const Duration ahead = next - part.turns[turn].offset;
  return ahead > Duration{0} ? ahead : ahead + part.plan.cycle;
}

void list(const SwitchSlot& slot, std::array<AttemptId, SwitchRecord::kMaxListed>& ids,
          std::uint32_t& count) {
  ids[0] = slot.attempt;
  count = 1;
}

}  // namespace

// `part` has just been made true for `now`.
[[gnu::hot]] void SwitchFollower::expect_turn(const SwitchProgram::Part* part, TimePoint now) {
  if (uses_barriers_ || part == nullptr || part->turns.empty()) return;
  const Turns& turns = part->turns;
  const TimePoint cycle = now - (now - part->plan.start) % part->plan.cycle;
  const auto next = std::find_if(turns.begin(), turns.end(),
                                 [&](const auto& turn) { return cycle + turn.offset > now; });
  const TimePoint due =
      next == turns.end() ? cycle + part->plan.cycle + turns.front().offset : cycle + next->offset;
  const bool is_last = part == &program_->parts.back();
  next_turn_ = {part, next == turns.end() ? 0 : static_cast<std::size_t>(next - turns.begin()), due,
                due, is_last ? TimePoint::max() : (part + 1)->plan.start};
  next_turn_.until = due + length(*part, next_turn_.turn);
  if (due >= next_turn_.ends) next_turn_.part = nullptr;
  if (next_turn_.part != nullptr) awaited_ = due;
}

[[gnu::hot]] void SwitchFollower::expect_following_turn() {
  NextTurn& next = next_turn_;
  next.turn = after(next.part->turns, next.turn);
  next.due = next.until;
  next.until = next.due + length(*next.part, next.turn);
  awaited_ = std::min(next.due, next.ends);
  if (next.due >= next.ends) next.part = nullptr;
}

// False also if one of them is not as the last switch should have left it.
[[gnu::hot]] bool SwitchFollower::is_plain_turn(TimePoint woke) const {
  const NextTurn& next = next_turn_;
  if (next.part == nullptr || woke < next.due || woke >= std::min(next.until, next.ends)) {
    return false;
  }
  const Turns& turns = next.part->turns;
  const SwitchSlot* const leaves = turns[before(turns, next.turn)].slot;
  const SwitchProgram::Turn& enters = turns[next.turn];
  return (leaves == nullptr || !leaves->stopped) &&
         (enters.slot == nullptr || (enters.slot->stopped && !enters.slot->watch.is_held())) &&
         (enters.network == nullptr || enters.network->holds_channel());
}

// Says when step() must be called again.
[[gnu::hot]] std::optional<TimePoint> SwitchFollower::take_turn(TimePoint woke) {
  const SwitchProgram::Part& part = *next_turn_.part;
  const SwitchProgram::Turn& enters = part.turns[next_turn_.turn];
  SwitchSlot* const leaves = part.turns[before(part.turns, next_turn_.turn)].slot;
  SwitchRecord record;
  record.due = next_turn_.due;
  record.woke = woke - record.due;
  record.epoch = part.plan.epoch;
  std::uint64_t failed = 0;
  if (leaves != nullptr) {
    failed += stop(*leaves, woke);
    leaves->has_turn.store(false, std::memory_order_relaxed);
    list(*leaves, record.left, record.left_count);
  }
  const TimePoint stopped = clock_.now();
  record.stopped = record.guarded = record.saved = record.restored = stopped - record.due;
  if (enters.slot != nullptr) {
    failed += let_go(*enters.slot, enters.network, stopped, stopped);
    enters.slot->has_turn.store(true, std::memory_order_relaxed);
    list(*enters.slot, record.entered, record.entered_count);
    counters_.busy.start(stopped);
  } else {
    counters_.busy.stop(stopped);
  }
  record.done = clock_.now() - record.due;
  note(record);
  if (failed != 0) return leave_turns(failed, woke, stopped);
  expect_following_turn();
  return watch_turn(leaves, enters.slot, woke, stopped);
}

// One of them is not as it should be: the next boundary mends it the long way.
std::optional<TimePoint> SwitchFollower::leave_turns(std::uint64_t failed, TimePoint woke,
                                                     TimePoint stopped) {
  count(counters_.failed, failed);
  next_turn_.part = nullptr;
  awaited_ = position(woke).next;
  watch(woke, stopped);
  const auto next = look(woke);
  return next && (!awaited_ || *next < *awaited_) ? next : awaited_;
}

// As watch() and look(): everybody else is stopped, and nobody is in the background.
[[gnu::hot]] std::optional<TimePoint> SwitchFollower::watch_turn(SwitchSlot* leaves,
                                                                 SwitchSlot* enters, TimePoint woke,
                                                                 TimePoint stopped) {
  std::optional<TimePoint> next = awaited_;
  if (leaves != nullptr) {
    const bool was_idle = leaves->watch.is_idle();
    leaves->watch.stops(woke, pace_);
    activity_changed_ |= was_idle != leaves->watch.is_idle();
  }
  if (enters != nullptr) {
    enters->watch.goes_on(stopped);
    const auto look = enters->watch.next_look(pace_);
    if (look && *look < *next) next = look;
  }
  if (!program_->glances) return next;
  const auto glance = program_->glances->look(clock_.now(), awaited_, program_->slots);
  return glance && *glance < *next ? glance : next;
}

}  // namespace score::node
