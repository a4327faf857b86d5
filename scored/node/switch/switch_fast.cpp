#include "scored/node/switch/switch_fast.hpp"

#include <algorithm>

namespace score::node {

namespace {

using TurnList = std::vector<SwitchProgram::Turn>;

std::size_t before(const TurnList& turns, std::size_t turn) {
  return turn == 0 ? turns.size() - 1 : turn - 1;
}

std::size_t after(const TurnList& turns, std::size_t turn) {
  return turn + 1 == turns.size() ? 0 : turn + 1;
}

Duration length(const SwitchProgram::Part& part, std::size_t turn) {
  const Duration next = part.turns[after(part.turns, turn)].offset;
  const Duration ahead = next - part.turns[turn].offset;
  return ahead > Duration{0} ? ahead : ahead + part.plan.cycle;
}

}  // namespace

[[gnu::hot]] std::optional<TimePoint> FastSwitch::expect(const SwitchProgram& program,
                                                         const SwitchProgram::Part& part,
                                                         TimePoint now) {
  const TurnList& turns = part.turns;
  if (turns.empty()) return std::nullopt;
  const TimePoint cycle = now - (now - part.plan.start) % part.plan.cycle;
  const auto next = std::find_if(turns.begin(), turns.end(),
                                 [&](const auto& turn) { return cycle + turn.offset > now; });
  const TimePoint due =
      next == turns.end() ? cycle + part.plan.cycle + turns.front().offset : cycle + next->offset;
  const bool is_last = &part == &program.parts.back();
  next_ = {&part, next == turns.end() ? 0 : static_cast<std::size_t>(next - turns.begin()), due,
           due, is_last ? TimePoint::max() : (&part + 1)->plan.start};
  next_.until = due + length(part, next_.turn);
  if (due < next_.ends) return due;
  cancel();
  return std::nullopt;
}

[[gnu::hot]] TimePoint FastSwitch::expect_following() {
  next_.turn = after(next_.part->turns, next_.turn);
  next_.due = next_.until;
  next_.until = next_.due + length(*next_.part, next_.turn);
  if (next_.due >= next_.ends) cancel();
  return std::min(next_.due, next_.ends);
}

[[gnu::hot]] bool FastSwitch::fits(TimePoint woke) const {
  if (next_.part == nullptr || woke < next_.due || woke >= std::min(next_.until, next_.ends)) {
    return false;
  }
  const TurnList& turns = next_.part->turns;
  const SwitchEntry* const leaves = turns[before(turns, next_.turn)].entry;
  const SwitchProgram::Turn& enters = turns[next_.turn];
  const bool is_filled =
      !next_.part->fills.empty() && (enters.entry == nullptr || enters.entry->watch.leaves_time());
  return !is_filled && (leaves == nullptr || leaves->role == Role::Runs) &&
         (enters.entry == nullptr ||
          (enters.entry->is_stopped() && !enters.entry->watch.is_held())) &&
         (enters.network == nullptr || enters.network->holds_channel());
}

[[gnu::hot]] FastSwitch::Taken FastSwitch::take(TimePoint woke) {
  const SwitchProgram::Part& part = *next_.part;
  const SwitchProgram::Turn& turn = part.turns[next_.turn];
  Taken taken{.leaves = part.turns[before(part.turns, next_.turn)].entry, .enters = turn.entry};
  SwitchRecord record;
  record.due = next_.due;
  record.woke = woke - record.due;
  record.slice = next_.until - next_.due;
  record.epoch = part.plan.epoch;
  if (taken.leaves != nullptr) {
    taken.failed += control_.stop(*taken.leaves, woke);
    taken.leaves->has_turn.store(false, std::memory_order_relaxed);
    record.add_left(taken.leaves->attempt);
  }
  taken.stopped = clock_.now();
  record.stopped = record.guarded = record.saved = record.restored = taken.stopped - record.due;
  if (taken.enters != nullptr) {
    taken.failed += control_.resume(*taken.enters, turn.network, taken.stopped, taken.stopped);
    taken.enters->has_turn.store(true, std::memory_order_relaxed);
    record.add_entered(taken.enters->attempt);
    record.busy = 1;
    counters_.busy.start(taken.stopped);
  } else {
    counters_.busy.stop(taken.stopped);
  }
  record.done = clock_.now() - record.due;
  control_.note(record);
  return taken;
}

}  // namespace score::node
