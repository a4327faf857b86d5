#include "scored/head/hooks/submit_queue.hpp"

namespace score::head {

void SubmitQueue::add(UserId user, Ticket ticket) {
  waiting_[user].push_back(ticket);
}

std::optional<SubmitQueue::Ticket> SubmitQueue::next() {
  if (waiting_.empty()) return std::nullopt;
  auto turn = last_ ? waiting_.upper_bound(*last_) : waiting_.begin();
  if (turn == waiting_.end()) turn = waiting_.begin();
  last_ = turn->first;
  const Ticket ticket = turn->second.front();
  turn->second.pop_front();
  if (turn->second.empty()) waiting_.erase(turn);
  return ticket;
}

}  // namespace score::head
