#pragma once
// Simulates one node's connection to the head in memory. It is a reliable stream each way that is
// delayed, stalled, cut, or blocked by a partition. Messages are never lost or reordered within a
// connection; messages in flight when it is cut are lost.

#include "base/model/model.hpp"
#include "gang/node/clock_filter.hpp"
#include "tests/sim/events.hpp"

#include <functional>
#include <variant>

namespace score::sim {

using namespace std::chrono_literals;

struct Ping {  // the clock exchange, which is a heartbeat too
  TimePoint node_sent{};
};

struct Pong {
  gang::ClockSample sample;  // without node_received
};

using Upward = std::variant<base::NodeToHead, Ping>;
using Downward = std::variant<base::HeadToNode, Pong>;

class Link {
 public:
  // On a usual connection one message in 50 takes up to 60 ms; on a prompt one none does.
  enum class Pace { Usual, Prompt };

  struct Ends {
    std::function<void(const Upward&)> to_head;
    std::function<void(const Downward&)> to_node;
    std::function<void()> head_lost;
    std::function<void()> node_lost;
  };

  Link(Events& events, Chance& chance, Pace pace, Ends ends)
      : events_(events), chance_(chance), pace_(pace), ends_(std::move(ends)) {}

  [[nodiscard]] bool is_up() const { return up_; }

  void connect() {
    up_ = true;
    ++generation_;
    head_side_ = node_side_ = true;
    last_up_ = last_down_ = events_.now();
  }

  // Cuts the connection. Both ends notice it, each after its own delay.
  void cut() {
    if (!up_) return;
    up_ = false;
    const auto generation = ++generation_;
    events_.after(chance_.between(0ns, 50ms), [this, generation] {
      if (generation == generation_) lose_head_side();
    });
    events_.after(chance_.between(0ns, 50ms), [this, generation] {
      if (generation == generation_) lose_node_side();
    });
  }

  // An end that closed the connection itself does not notice the cut.
  void cut_silently_at_head() {
    head_side_ = false;
    cut();
  }

  void cut_silently_at_node() {
    node_side_ = false;
    cut();
  }

  // Both ends must have noticed the end of the old connection before a new one.
  void settle() {
    lose_head_side();
    lose_node_side();
  }

  // Returns the latest arrival of late messages of the head and the node.
  [[nodiscard]] TimePoint late_until() const { return late_until_; }

  void stall(Duration time) { stalled_until_ = events_.now() + time; }

  void up(Upward message) {
    if (!up_) return;
    last_up_ = arrival(last_up_);
    if (last_up_ - events_.now() > kInTime) late_until_ = std::max(late_until_, last_up_);
    deliver(last_up_, [this, m = std::move(message)] { ends_.to_head(m); });
  }

  void down(Downward message) {
    if (!up_) return;
    last_down_ = arrival(last_down_);
    if (last_down_ - events_.now() > kInTime) late_until_ = std::max(late_until_, last_down_);
    deliver(last_down_, [this, m = std::move(message)] { ends_.to_node(m); });
  }

 private:
  static constexpr Duration kInTime = 1500us;  // below ClusterConfig::idle_lead

  TimePoint arrival(TimePoint not_before) {
    const bool is_slow = pace_ == Pace::Usual && chance_.one_in(50);
    const Duration delay = is_slow ? chance_.between(1ms, 60ms) : chance_.between(30us, 800us);
    return std::max({not_before, events_.now() + delay, stalled_until_}) + 1ns;
  }

  template <typename What>
  void deliver(TimePoint at, What what) {
    events_.at(at, [this, generation = generation_, what = std::move(what)] {
      if (generation == generation_) what();
    });
  }

  void lose_head_side() {
    if (std::exchange(head_side_, false)) ends_.head_lost();
  }

  void lose_node_side() {
    if (std::exchange(node_side_, false)) ends_.node_lost();
  }

  Events& events_;
  Chance& chance_;
  Pace pace_;
  Ends ends_;
  bool up_ = false;
  bool head_side_ = false;  // still regards the connection as open
  bool node_side_ = false;
  std::uint64_t generation_ = 0;
  TimePoint last_up_{}, last_down_{}, stalled_until_{}, late_until_{};
};

}  // namespace score::sim
