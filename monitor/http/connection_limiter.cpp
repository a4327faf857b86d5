#include "monitor/http/connection_limiter.hpp"

#include <algorithm>
#include <iterator>

namespace score::monitor {

ConnectionLimiter::Verdict ConnectionLimiter::enter(ConnectionId id, const std::string& peer) {
  Verdict verdict;
  const auto mine = of_peer_.find(peer);
  const bool is_peer_full = mine != of_peer_.end() && mine->second >= limits_.connections_per_peer;
  if (is_peer_full) {
    verdict.leaves = oldest_silent(&peer);
  } else if (open_.size() >= limits_.connections) {
    verdict.leaves = oldest_silent(largest_peer());
    if (!verdict.leaves) verdict.leaves = oldest_silent(nullptr);
  }
  const bool is_full = is_peer_full || open_.size() >= limits_.connections;
  verdict.may_enter = !is_full || verdict.leaves.has_value();
  if (!verdict.may_enter) return verdict;
  if (verdict.leaves) left(*verdict.leaves);
  Open& open = open_[id];
  open.peer = peer;
  open.place = silent_.insert(silent_.end(), id);
  ++of_peer_[peer];
  return verdict;
}

void ConnectionLimiter::left(ConnectionId id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  leave_silence(found->second);
  const auto peer = of_peer_.find(found->second.peer);
  if (--peer->second == 0) of_peer_.erase(peer);
  open_.erase(found);
}

void ConnectionLimiter::request_arrived(ConnectionId id) {
  const auto found = open_.find(id);
  if (found != open_.end()) leave_silence(found->second);
}

void ConnectionLimiter::answered(ConnectionId id) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.is_silent) return;
  found->second.is_silent = true;
  found->second.place = silent_.insert(silent_.end(), id);
}

void ConnectionLimiter::leave_silence(Open& open) {
  if (open.is_silent) silent_.erase(open.place);
  open.is_silent = false;
}

std::optional<ConnectionLimiter::ConnectionId> ConnectionLimiter::oldest_silent(
    const std::string* of_peer) const {
  const auto found = std::ranges::find_if(silent_, [&](ConnectionId id) {
    return of_peer == nullptr || open_.at(id).peer == *of_peer;
  });
  return found == silent_.end() ? std::nullopt : std::optional(*found);
}

const std::string* ConnectionLimiter::largest_peer() const {
  const auto most = std::ranges::max_element(
      of_peer_, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == of_peer_.end() ? nullptr : &most->first;
}

// An entry whose budget is full carries no information, so it can be removed.
TokenBucket& ConnectionLimiter::budget(const std::string& asker, TimePoint now) {
  for (auto one = budgets_.begin(); budgets_.size() >= kMaxAskers && one != budgets_.end();) {
    const bool is_full = one->second.try_take(now, limits_.request_burst);
    one = is_full ? budgets_.erase(one) : std::next(one);
  }
  return budgets_.try_emplace(asker, limits_.requests_per_second, limits_.request_burst)
      .first->second;
}

bool ConnectionLimiter::may_ask(const std::string& asker, TimePoint now) {
  return budget(asker, now).try_take(now);
}

void ConnectionLimiter::charge(const std::string& asker, TimePoint now, Duration took) {
  const double tokens = std::chrono::duration<double>(took) / limits_.token_time;
  if (tokens > 1) budget(asker, now).reserve(now, tokens - 1);
}

}  // namespace score::monitor
