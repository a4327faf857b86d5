#include "scored/node/switch/barrier_meetings.hpp"

#include "base/limits.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr Duration kFlushLimit = std::chrono::microseconds{500};
constexpr Duration kFlushPause = std::chrono::microseconds{20};
constexpr Duration kDrainLimit = std::chrono::milliseconds{5};
constexpr Duration kFarthest = std::chrono::seconds{30};
static_assert(kFarthest > limits::kMaxQuantum);
constexpr Duration kMeetLimit = std::chrono::milliseconds{200};
constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr std::size_t index_of(base::Meeting meeting) {
  return static_cast<std::size_t>(meeting);
}

// Returns true if its gang has met at the boundary.
bool has_met(const SwitchProgram& program, std::size_t i, base::Meeting meeting,
             SwitchEntry::Boundary boundary) {
  const DirectGang* const gang = program.gangs[i].get();
  if (gang != nullptr && gang->has_met(meeting, TimePoint(Duration(boundary)))) return true;
  const auto met = program.entries[i]->met[index_of(meeting)].load(std::memory_order_acquire);
  return std::chrono::abs(Duration{met - boundary}) <= base::kSameBoundary;
}

SwitchEntry::Boundary boundary_of(const SwitchPosition& where, TimePoint due) {
  const gang::SwitchPlan& plan = where.part->plan;
  return (plan.cluster_start + (due - plan.start)).time_since_epoch().count();
}

// Returns true if an attempt that enters here takes over a channel.
bool takes_a_channel(const SwitchProgram& program, const SwitchPosition& where) {
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    const bool runs = where.runs[i] != 0 && is_managed(*program.entries[i], where.part);
    if (runs && program.networks[i] && program.networks[i]->follows_another()) return true;
  }
  return false;
}

// Returns true if no attempt whose channel it takes has frames in flight any more.
bool may_take_channel(const SwitchProgram& program, std::size_t i, TimePoint now) {
  const SwitchEntry& entry = *program.entries[i];
  const auto& network = program.networks[i];
  if (!network || !network->follows_another() || now >= entry.drained_by) return true;
  for (std::size_t k = 0; k < program.entries.size(); ++k) {
    if (program.entries[k]->left_at == entry.waits_for &&
        !has_met(program, k, base::Meeting::Stopped, entry.waits_for)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void BarrierMeetings::reach(SwitchProgram& program, std::size_t i, base::Meeting meeting,
                            SwitchEntry::Boundary boundary) {
  if (program.gangs[i] == nullptr) return report_to_head(*program.entries[i], meeting, boundary);
  program.gangs[i]->come(meeting, TimePoint(Duration(boundary)), clock_.now(), *program.meetings);
}

void BarrierMeetings::report_to_head(SwitchEntry& entry, base::Meeting meeting,
                                     SwitchEntry::Boundary boundary) {
  entry.reached[index_of(meeting)].store(boundary, std::memory_order_release);
  has_change_ = true;
}

// Returns when all data that the stopped attempts sent has left this node's queues, or after
// kFlushLimit.
void BarrierMeetings::flush_leaving(const SwitchProgram& program, const SwitchRecord& record) {
  const auto& networks = program.networks;
  const auto is_flushed = [&] {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      if (program.entries[i]->is_stopped() && networks[i] && !networks[i]->is_flushed())
        return false;
    }
    return true;
  };
  const TimePoint limit = record.due + record.stopped + kFlushLimit;
  while (!is_flushed() && clock_.now() < limit) clock_.sleep_until(clock_.now() + kFlushPause);
}

void BarrierMeetings::set_meets(bool meets, SwitchProgram* program) {
  if (std::exchange(meets_, meets) == meets || meets || program == nullptr) return;
  for (std::size_t i = 0; i < program->entries.size(); ++i) {
    if (program->gangs[i] != nullptr) continue;
    program->entries[i]->drained_by = program->entries[i]->goes_by = TimePoint::min();
  }
}

void BarrierMeetings::drop_waiting(SwitchProgram& program, const SwitchPosition& where) {
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    SwitchEntry& entry = *program.entries[i];
    if (entry.waits_for == 0) continue;
    const bool still_runs =
        where.runs != nullptr && where.runs[i] != 0 && !entry.watch.is_background();
    if (still_runs) continue;
    entry.waits_for = 0;
    counters_.unmet.fetch_add(1, kRelaxed);
  }
  if (open_record_ && open_record_->left_count + open_record_->entered_count > 0) {
    control_.note(*open_record_);
  }
  open_record_.reset();
}

// The next users of a channel on this node wait until all attempts have stopped if `is_awaited` is
// set. If it is not, the nodes of the leaving attempts answer only nodes that ask, which saves half
// of all words of a switch.
void BarrierMeetings::call_leaving(SwitchProgram& program, SwitchEntry::Boundary boundary,
                                   bool is_awaited) {
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    SwitchEntry& entry = *program.entries[i];
    const bool leaves = entry.is_stopped() && !entry.has_turn && entry.left_at == 0;
    if (!leaves || !can_meet(program, i)) continue;
    entry.left_at = boundary;
    DirectGang* const gang = program.gangs[i].get();
    if (is_awaited || gang == nullptr) {
      reach(program, i, base::Meeting::Stopped, boundary);
    } else {
      gang->come_quietly(base::Meeting::Stopped, TimePoint(Duration(boundary)), clock_.now(),
                         *program.meetings);
    }
  }
}

void BarrierMeetings::call(SwitchProgram& program, const SwitchPosition& where, TimePoint due,
                           const SwitchRecord& record) {
  if (where.runs == nullptr || (!meets_ && !program.meetings)) return;
  const SwitchEntry::Boundary boundary = boundary_of(where, due);
  ahead_ = TimePoint(Duration(boundary)) - due;
  flush_leaving(program, record);
  call_leaving(program, boundary, takes_a_channel(program, where));
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    SwitchEntry& entry = *program.entries[i];
    if (where.runs[i] == 0 || !is_managed(entry, where.part) || entry.waits_for != 0) continue;
    if (!can_meet(program, i)) continue;
    const bool is_new = !entry.is_stopped() && !entry.has_turn;
    if (is_new)
      reach(program, i, base::Meeting::Ready, boundary);  // its gang waits for it on other nodes
    if (!enters(program, i, where)) continue;
    entry.waits_for = boundary;
    entry.is_restored = false;
    entry.drained_by = due + kDrainLimit;
    entry.goes_by = due + kMeetLimit;
  }
}

bool BarrierMeetings::keep(const SwitchProgram& program, const SwitchRecord& record) {
  const auto waits = [](const auto& entry) { return entry->waits_for != 0; };
  if (std::none_of(program.entries.begin(), program.entries.end(), waits)) return false;
  open_record_ = record;
  return true;
}

void BarrierMeetings::attend_one(SwitchProgram& program, std::size_t i, TimePoint now) {
  SwitchEntry& entry = *program.entries[i];
  ChannelUser* const network = program.networks[i].get();
  if (!entry.is_restored) {
    if (!may_take_channel(program, i, now)) return;
    SwitchRecord& record = *open_record_;
    if (network != nullptr && !network->holds_channel()) {
      record.guarded = clock_.now() - record.due;
      network->take_channel(program.networks, counters_.channels);
      record.saved = clock_.now() - record.due;
      network->restore(counters_.channels);
      record.restored = clock_.now() - record.due;
    }
    entry.is_restored = true;
    reach(program, i, base::Meeting::Ready, entry.waits_for);
  }
  const bool met = has_met(program, i, base::Meeting::Ready, entry.waits_for);
  if (!met && now < entry.goes_by) return;
  if (!met) counters_.unmet.fetch_add(1, kRelaxed);
  entry.waits_for = 0;
  const TimePoint gone = clock_.now();
  counters_.failed.fetch_add(control_.resume(entry, network, gone, gone), kRelaxed);
  entry.has_turn = true;
  entry.watch.goes_on(gone);
  counters_.busy.start(gone);
  open_record_->add_entered(entry.attempt);
  open_record_->done = clock_.now() - open_record_->due;
}

// Words that are far ahead of cluster time are dropped, because they would only displace those of
// the next meeting.
void BarrierMeetings::hear_all(SwitchProgram& program, TimePoint now) {
  if (!program.meetings) return;
  while (const auto received = program.meetings->receive()) {
    if (received->word.word.boundary > now + ahead_ + kFarthest) continue;
    for (std::size_t i = 0; i < program.entries.size(); ++i) {
      if (program.gangs[i] == nullptr || program.entries[i]->attempt != received->word.attempt)
        continue;
      program.gangs[i]->hear(*received, now, *program.meetings);
    }
  }
}

std::optional<TimePoint> BarrierMeetings::advance_gangs(SwitchProgram& program, TimePoint now) {
  std::optional<TimePoint> next;
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    DirectGang* const gang = program.gangs[i].get();
    if (gang == nullptr) continue;
    while (const auto overdue = gang->take_overdue(now)) {
      report_to_head(*program.entries[i], overdue->meeting,
                     overdue->boundary.time_since_epoch().count());
    }
    const auto due = gang->advance(now, *program.meetings);
    if (due) next = std::min(next.value_or(*due), *due);
  }
  return next;
}

std::optional<TimePoint> BarrierMeetings::attend(SwitchProgram& program, TimePoint now) {
  hear_all(program, now);
  std::optional<TimePoint> next = attend_all(program, now);
  const auto due = advance_gangs(program, now);
  return due ? std::min(next.value_or(*due), *due) : next;
}

std::optional<TimePoint> BarrierMeetings::attend_all(SwitchProgram& program, TimePoint now) {
  std::optional<TimePoint> next;
  const auto& entries = program.entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i]->waits_for == 0) continue;
    if (!open_record_) open_record_ = SwitchRecord{.due = now};
    attend_one(program, i, now);
    if (entries[i]->waits_for == 0) continue;
    const TimePoint until = entries[i]->is_restored ? entries[i]->goes_by : entries[i]->drained_by;
    next = std::min(next.value_or(until), until);
  }
  if (!next && open_record_) {
    control_.note(*open_record_);
    open_record_.reset();
  }
  return next;
}

}  // namespace score::node
