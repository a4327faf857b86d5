// The hosts of a cluster that boots: which may be reached now, which have failed, and whether the
// cluster is up. No processes: events and times in, decisions out.
#pragma once

#include "base/time.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace score::scout {

class Roll {
 public:
  struct Bounds {
    std::size_t hosts = 0;
    std::size_t least = 0;    // hosts that must come up
    std::size_t at_once = 0;  // hosts that are being reached at the same time
    Duration limit{};         // for all of them together
  };

  enum class Decision { Wait, Up, TooFew };

  Roll(const Bounds& bounds, TimePoint now);

  // Hosts to start reaching now, in order; each is given once.
  std::vector<std::size_t> start_now();

  // Its keeper runs: another host may be reached. Repeats are ignored.
  void on_hello(std::size_t host);
  // Its node daemon runs.
  void on_ready(std::size_t host);
  // It takes no part from now on; a second time: ignored.
  void on_failed(std::size_t host);

  // `nodes_up`: as the head counts them. Nothing is decided before every host is ready or has
  // failed, so that all failures are known, or the limit is over; then the hosts that are up are
  // enough if there are as many as `least`.
  [[nodiscard]] Decision decide(std::size_t nodes_up, TimePoint now) const;

  // Its keeper or its node daemon runs.
  [[nodiscard]] bool has_hello(std::size_t host) const {
    return states_[host] == State::Hello || states_[host] == State::Ready;
  }

  // Every host's node daemon runs or the host has failed, or the limit is over.
  [[nodiscard]] bool is_settled(TimePoint now) const {
    return now >= deadline_ || count(State::Ready) + count(State::Failed) == states_.size();
  }

  [[nodiscard]] TimePoint deadline() const { return deadline_; }

  [[nodiscard]] bool has_failed(std::size_t host) const { return states_[host] == State::Failed; }

  // Hosts that take part: neither waiting nor failed.
  [[nodiscard]] std::size_t taking_part() const;

 private:
  enum class State {
    Waiting,   // not started yet
    Reaching,  // its link was started
    Hello,     // the keeper runs
    Ready,     // the node daemon runs
    Failed,
  };

  [[nodiscard]] std::size_t count(State state) const;

  Bounds bounds_;
  TimePoint deadline_;
  std::vector<State> states_;
};

}  // namespace score::scout
