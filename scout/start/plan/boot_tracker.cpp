#include "scout/start/plan/boot_tracker.hpp"

#include <algorithm>

namespace score::scout {

BootTracker::BootTracker(const Bounds& bounds, TimePoint now)
    : bounds_(bounds), deadline_(now + bounds.limit), states_(bounds.hosts, State::Waiting) {}

std::size_t BootTracker::count(State state) const {
  return static_cast<std::size_t>(std::ranges::count(states_, state));
}

std::vector<std::size_t> BootTracker::start_now() {
  std::vector<std::size_t> hosts;
  auto reaching = count(State::Reaching);
  for (std::size_t i = 0; i < states_.size() && reaching < bounds_.at_once; ++i) {
    if (states_[i] != State::Waiting) continue;
    states_[i] = State::Reaching;
    hosts.push_back(i);
    ++reaching;
  }
  return hosts;
}

void BootTracker::on_hello(std::size_t host) {
  if (states_[host] == State::Reaching) states_[host] = State::Hello;
}

void BootTracker::on_ready(std::size_t host) {
  if (states_[host] != State::Failed) states_[host] = State::Ready;
}

void BootTracker::on_failed(std::size_t host) {
  states_[host] = State::Failed;
}

BootTracker::Decision BootTracker::decide(std::size_t nodes_up, TimePoint now) const {
  if (!is_settled(now)) return Decision::Wait;
  const auto usable = bounds_.hosts - count(State::Failed);
  const auto least = std::max<std::size_t>(1, bounds_.least);
  if (usable < least) return Decision::TooFew;
  if (nodes_up >= usable) return Decision::Up;
  if (now < deadline_) return Decision::Wait;
  return nodes_up >= least ? Decision::Up : Decision::TooFew;
}

std::size_t BootTracker::taking_part() const {
  return states_.size() - count(State::Waiting) - count(State::Failed);
}

}  // namespace score::scout
