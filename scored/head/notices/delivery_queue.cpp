#include "scored/head/notices/delivery_queue.hpp"

#include <algorithm>
#include <utility>

namespace score::head {

void DeliveryQueue::erase(std::list<Entry>::iterator entry) {
  taken_.give_back(entry->notice.user);
  entries_.erase(entry);
}

// A notice that is being sent keeps its place.
std::size_t DeliveryQueue::make_room(UserId user) {
  if (taken_.has_place(user)) return 0;
  const bool own = taken_.has_all(user);
  const auto oldest = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return !entry.is_sending && (!own || entry.notice.user == user);
  });
  if (oldest == entries_.end()) return 0;
  erase(oldest);
  return 1;
}

std::size_t DeliveryQueue::add(Notice notice, TimePoint now) {
  const std::size_t dropped = make_room(notice.user);
  if (dropped == 0 && !taken_.has_place(notice.user)) return 1;  // all places are being sent
  taken_.take(notice.user);
  entries_.push_back({++last_key_, std::move(notice), 0, now, false});
  return dropped;
}

std::optional<DeliveryQueue::Delivery> DeliveryQueue::take(TimePoint now) {
  if (sending_ >= rules_.at_once) return std::nullopt;
  const auto next = std::ranges::find_if(
      entries_, [now](const Entry& entry) { return !entry.is_sending && entry.due <= now; });
  if (next == entries_.end()) return std::nullopt;
  next->is_sending = true;
  ++next->tries;
  ++sending_;
  return Delivery{next->key, next->notice};
}

DeliveryQueue::Verdict DeliveryQueue::settle(std::uint64_t key, Outcome outcome, TimePoint now) {
  const auto entry = std::ranges::find(entries_, key, &Entry::key);
  if (entry == entries_.end()) return Verdict::GivenUp;
  entry->is_sending = false;
  --sending_;
  if (outcome == Outcome::Failed && entry->tries < rules_.tries) {
    const Duration pause = rules_.first_pause * (1LL << std::min(entry->tries - 1, 30U));
    entry->due = now + std::min(pause, rules_.longest_pause);
    return Verdict::WillRetry;
  }
  erase(entry);
  return outcome == Outcome::Sent ? Verdict::Sent : Verdict::GivenUp;
}

std::optional<TimePoint> DeliveryQueue::next_time() const {
  if (sending_ >= rules_.at_once) return std::nullopt;
  std::optional<TimePoint> next;
  for (const Entry& entry : entries_) {
    if (entry.is_sending) continue;
    next = next ? std::min(*next, entry.due) : entry.due;
  }
  return next;
}

}  // namespace score::head
