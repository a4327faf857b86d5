// Barrier mode, SCore-D's way: at a boundary a node stops who leaves and waits until what it had
// sent has left the machine; then it says so. Who enters waits until all nodes of those who leave
// have done that, so that nothing of theirs is on its way; then its channel is saved and restored,
// and it says so too. It goes when all its nodes have.
//
// The thread never waits for anybody else while it does so: who waits is only a slot that step()
// looks at when the main thread rings. So a node that does not come costs its own job the slice.
// Those who leave are waited for at most kDrainLimit, and a gang that has not met within kMeetLimit
// goes as in clock mode: else a job that is alone would wait for ever for a node that came late.
// Who enters at no boundary of the timetable (it is new, or the timetable came late) does not wait.
#include "scored/node/switch/switch_follower.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kFlushLimit = std::chrono::microseconds{500};
constexpr Duration kFlushPause = std::chrono::microseconds{20};
constexpr Duration kDrainLimit = std::chrono::milliseconds{5};
constexpr Duration kMeetLimit = std::chrono::milliseconds{200};
constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr std::size_t index_of(base::Meeting meeting) {
  return static_cast<std::size_t>(meeting);
}

// Whether its gang has met at the boundary.
bool has_met(const SwitchSlot& slot, base::Meeting meeting, SwitchSlot::Boundary boundary) {
  const auto met = slot.met[index_of(meeting)].load(std::memory_order_acquire);
  return std::chrono::abs(Duration{met - boundary}) <= base::kSameBoundary;
}

}  // namespace

SwitchSlot::Boundary SwitchFollower::boundary_of(const Position& where, TimePoint due) {
  const gang::SwitchPlan& plan = where.part->plan;
  return (plan.cluster_start + (due - plan.start)).time_since_epoch().count();
}

void SwitchFollower::reach(SwitchSlot& slot, base::Meeting meeting, SwitchSlot::Boundary boundary) {
  slot.reached[index_of(meeting)].store(boundary, std::memory_order_release);
  meetings_changed_ = true;
}

// Until what the stopped ones have sent is out of this node's queues.
void SwitchFollower::flush_leaving(const SwitchRecord& record) {
  const auto& networks = program_->networks;
  const auto is_flushed = [&] {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      if (program_->slots[i]->stopped && networks[i] && !networks[i]->is_flushed()) return false;
    }
    return true;
  };
  const TimePoint limit = record.due + record.stopped + kFlushLimit;
  while (!is_flushed() && clock_.now() < limit) clock_.sleep_until(clock_.now() + kFlushPause);
}

void SwitchFollower::set_meets(bool meets) {
  if (std::exchange(meets_, meets) == meets || meets || program_ == nullptr) return;
  for (const auto& slot : program_->slots) slot->drained_by = slot->goes_by = TimePoint::min();
}

// Who waits from before and does not run any more has lost its slice.
void SwitchFollower::drop_waiting(const Position& where) {
  const auto& slots = program_->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]->waits_for == 0) continue;
    const bool is_wanted =
        where.runs != nullptr && where.runs[i] != 0 && !slots[i]->watch.is_background();
    if (is_wanted) continue;
    slots[i]->waits_for = 0;
    counters_.unmet.fetch_add(1, kRelaxed);
  }
  if (open_record_ && open_record_->left_count + open_record_->entered_count > 0) {
    note(*open_record_);
  }
  open_record_.reset();
}

void SwitchFollower::call_meetings(const Position& where, TimePoint due,
                                   const SwitchRecord& record) {
  if (!is_due_ || where.runs == nullptr) return;
  const SwitchSlot::Boundary boundary = boundary_of(where, due);
  flush_leaving(record);
  const auto& slots = program_->slots;
  const auto& managed = where.part->plan.managed;
  for (const auto& slot : slots) {
    const bool leaves = slot->stopped && !slot->has_turn && slot->left_at == 0;
    if (!leaves) continue;
    slot->left_at = boundary;
    reach(*slot, base::Meeting::Stopped, boundary);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SwitchSlot& slot = *slots[i];
    const bool is_managed = std::binary_search(managed.begin(), managed.end(), slot.attempt);
    if (where.runs[i] == 0 || !is_managed || slot.waits_for != 0) continue;
    const bool is_new = !slot.stopped && !slot.has_turn;
    if (is_new) reach(slot, base::Meeting::Ready, boundary);  // its gang waits for it elsewhere
    if (!enters(i, where)) continue;
    slot.waits_for = boundary;
    slot.is_restored = false;
    slot.drained_by = due + kDrainLimit;
    slot.goes_by = due + kMeetLimit;
  }
}

// Nobody whose channel it takes has anything on its way any more.
bool SwitchFollower::may_take_channel(std::size_t i, TimePoint now) const {
  const SwitchSlot& slot = *program_->slots[i];
  const auto& network = program_->networks[i];
  if (!network || !network->follows_another() || now >= slot.drained_by) return true;
  const auto& slots = program_->slots;
  return std::none_of(slots.begin(), slots.end(), [&](const auto& other) {
    return other->left_at == slot.waits_for &&
           !has_met(*other, base::Meeting::Stopped, slot.waits_for);
  });
}

void SwitchFollower::attend_one(std::size_t i, TimePoint now) {
  SwitchSlot& slot = *program_->slots[i];
  ChannelUser* const network = program_->networks[i].get();
  if (!slot.is_restored) {
    if (!may_take_channel(i, now)) return;
    SwitchRecord& record = *open_record_;
    if (network != nullptr && !network->holds_channel()) {
      record.guarded = clock_.now() - record.due;
      network->take_channel(program_->networks, counters_.channels);
      record.saved = clock_.now() - record.due;
      network->restore(counters_.channels);
      record.restored = clock_.now() - record.due;
    }
    slot.is_restored = true;
    reach(slot, base::Meeting::Ready, slot.waits_for);
  }
  const bool met = has_met(slot, base::Meeting::Ready, slot.waits_for);
  if (!met && now < slot.goes_by) return;
  if (!met) counters_.unmet.fetch_add(1, kRelaxed);
  slot.waits_for = 0;
  const TimePoint gone = clock_.now();
  counters_.failed.fetch_add(let_go(slot, network, gone, gone), kRelaxed);
  slot.has_turn = true;
  slot.watch.goes_on(gone);
  counters_.busy.start(gone);
  list_entered(slot, *open_record_);
  open_record_->done = clock_.now() - open_record_->due;
}

std::optional<TimePoint> SwitchFollower::attend(TimePoint now) {
  std::optional<TimePoint> next;
  const auto& slots = program_->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]->waits_for == 0) continue;
    if (!open_record_) open_record_ = SwitchRecord{.due = now};
    attend_one(i, now);
    if (slots[i]->waits_for == 0) continue;
    const TimePoint until = slots[i]->is_restored ? slots[i]->goes_by : slots[i]->drained_by;
    next = std::min(next.value_or(until), until);
  }
  if (!next && open_record_) {
    note(*open_record_);
    open_record_.reset();
  }
  return next;
}

}  // namespace score::node
