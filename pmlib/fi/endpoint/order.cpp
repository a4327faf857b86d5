#include "pmlib/fi/endpoint/order.hpp"

#include <utility>

namespace score::pm::fi {

bool Order::must_wait(std::uint64_t peer, bool is_fenced) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return false;
  return !found->second.held.empty() || !found->second.may_begin(is_fenced);
}

void Order::begin(Peer& peer, Operation operation) {
  ++peer.in_flight;
  if (operation.holds_later) ++peer.holding;
}

void Order::run(std::uint64_t peer, Operation operation, Start start) {
  const bool waits = must_wait(peer, operation.is_fenced);
  Peer& p = peers_[peer];
  if (waits) {
    p.held.push_back({operation, std::move(start)});
    ++held_count_;
    return;
  }
  begin(p, operation);
  start();  // may end the operation
}

// An operation that begins here may end at once and call this function again. In that case the
// outer call continues.
void Order::ended(std::uint64_t peer, Operation operation) {
  auto at = peers_.find(peer);
  if (at == peers_.end()) return;  // cleared
  --at->second.in_flight;
  if (operation.holds_later) --at->second.holding;
  if (at->second.is_draining) return;
  while (!at->second.held.empty() &&
         at->second.may_begin(at->second.held.front().operation.is_fenced)) {
    Held next = std::move(at->second.held.front());
    at->second.held.pop_front();
    --held_count_;
    begin(at->second, next.operation);
    at->second.is_draining = true;
    next.start();
    at = peers_.find(peer);
    if (at == peers_.end()) return;
    at->second.is_draining = false;
  }
  if (at->second.held.empty() && at->second.in_flight == 0) peers_.erase(at);
}

}  // namespace score::pm::fi
