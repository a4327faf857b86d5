#include "scored/head/clients/turn_queue.hpp"

#include <algorithm>

namespace score::head {

void TurnQueue::add(UserId user, Ticket ticket) {
  User& of_user = users_[user];
  if (of_user.waiting.empty()) of_user.used = std::max(of_user.used, floor_);
  of_user.waiting.push_back(ticket);
  ++size_;
}

void TurnQueue::remove(UserId user, Ticket ticket) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  size_ -= std::erase(found->second.waiting, ticket);
}

std::optional<TurnQueue::Ticket> TurnQueue::next() {
  User* least = nullptr;
  for (auto& [id, user] : users_) {
    if (user.waiting.empty()) continue;
    if (least == nullptr || user.used < least->used) least = &user;
  }
  if (least == nullptr) return std::nullopt;
  floor_ = std::max(floor_, least->used);
  const Ticket ticket = least->waiting.front();
  least->waiting.pop_front();
  --size_;
  return ticket;
}

void TurnQueue::charge(UserId user, Duration time) {
  users_[user].used += std::max(time, kLeastTime);
  if (users_.size() > kRemembered) forget_idle();
}

void TurnQueue::forget_idle() {
  std::erase_if(users_, [](const auto& user) { return user.second.waiting.empty(); });
}

}  // namespace score::head
