// Tracks the hosts of a cluster that boots: which may be connected now, which have failed, and
// whether the cluster is up. It has no processes: it takes events and times, and returns decisions.
#pragma once

#include "base/time.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace score::scout {

class BootTracker {
 public:
  struct Bounds {
    std::size_t hosts = 0;
    std::size_t least = 0;    // hosts that must come up
    std::size_t at_once = 0;  // hosts that are being connected at the same time
    Duration limit{};         // for all of them together
  };

  enum class Decision { Wait, Up, TooFew };

  BootTracker(const Bounds& bounds, TimePoint now);

  // Returns the hosts to connect now, in order; each is returned once.
  std::vector<std::size_t> start_now();

  // Records that the host agent of the host runs, so a further host may be connected. Repeats are
  // ignored.
  void on_hello(std::size_t host);
  // Records that the node daemon of the host runs.
  void on_ready(std::size_t host);
  // Records that the host takes no part from now on. Repeats are ignored.
  void on_failed(std::size_t host);

  // Returns the decision for the head's count `nodes_up`. It waits until every host is ready or has
  // failed, so that all failures are known, or until the limit is over. Then the cluster is up if
  // at least `least` hosts are.
  [[nodiscard]] Decision decide(std::size_t nodes_up, TimePoint now) const;

  // Returns true if the host's host agent or its node daemon runs.
  [[nodiscard]] bool has_hello(std::size_t host) const {
    return states_[host] == State::Hello || states_[host] == State::Ready;
  }

  // Returns true if every host's node daemon runs or the host has failed, or if the limit is over.
  [[nodiscard]] bool is_settled(TimePoint now) const {
    return now >= deadline_ || count(State::Ready) + count(State::Failed) == states_.size();
  }

  [[nodiscard]] TimePoint deadline() const { return deadline_; }

  [[nodiscard]] bool has_failed(std::size_t host) const { return states_[host] == State::Failed; }

  // Returns the number of hosts that are neither waiting nor failed.
  [[nodiscard]] std::size_t taking_part() const;

 private:
  enum class State {
    Waiting,   // not started yet
    Reaching,  // its link was started
    Hello,     // the host agent runs
    Ready,     // the node daemon runs
    Failed,
  };

  [[nodiscard]] std::size_t count(State state) const;

  Bounds bounds_;
  TimePoint deadline_;
  std::vector<State> states_;
};

}  // namespace score::scout
