// This model has one sender, one receiver and the network between them. It is built around the
// shipped engine and explored breadth first. Everything that can happen in a state is enumerated:
// the application sends or consumes, a frame arrives, is lost, overtakes a different one or is
// duplicated, a timer fires.
//
// Claims:
//   safety    nothing is delivered twice, out of order or not at all before it is freed; the order
//             acked <= sent <= max_sent <= acked + W holds; the shared room is never overdrawn
//   progress  from every reachable state the completion (all delivered, consumed and acknowledged)
//             can still be reached
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace score::pm::model {

struct Network {
  bool reorder = false;
  bool duplicate = false;
  bool lose = true;
  std::uint8_t capacity = 2;  // frames in flight each way; further frames are lost
};

struct Bounds {
  std::uint8_t messages = 4;
  std::uint8_t window = 3;
  std::uint8_t buffers = 1;
  std::uint8_t start = 0;  // first number; near 255 the numbers wrap
  std::size_t max_states = 2'000'000;
};

struct Findings {
  std::size_t states = 0;
  std::size_t stuck = 0;
  std::string unsafe;  // the first broken claim, empty if none
  bool truncated = false;
};

// These are the shipped rules on small numbers, so that numbers wrap within a search.
struct SmallRules : Rules {
  using Seq = std::uint8_t;
};

template <class R>
class PairModel {
 public:
  PairModel(Bounds bounds, Network network)
      : bounds_(bounds), network_(network), engine_(limits_of(bounds)) {}

  Findings explore() {
    visit(initial(), kNoParent);
    for (std::uint32_t at = 0; at < states_.size() && findings_.unsafe.empty(); ++at) {
      if (states_.size() > bounds_.max_states) {
        findings_.truncated = true;
        break;
      }
      parent_ = at;
      expand(states_[at]);
    }
    findings_.states = states_.size();
    if (findings_.unsafe.empty() && !findings_.truncated) findings_.stuck = count_stuck();
    return findings_;
  }

 private:
  using Seq = typename R::Seq;
  using E = Engine<R>;
  static constexpr std::uint32_t kNoParent = ~std::uint32_t{0};
  static constexpr std::size_t kMaxInFlight = 4;

  struct InFlight {
    std::uint8_t kind = 0xff;  // 0xff = free slot, 0 = data, else ControlKind
    Seq number = 0;
    std::uint16_t count = 0;
    auto operator<=>(const InFlight&) const = default;
  };

  using Wire = std::array<InFlight, kMaxInFlight>;

  struct State {
    typename E::Send send;
    typename E::Receive receive;
    SharedRoom room;
    Wire data{}, control{};
    std::uint8_t consumed = 0;
    bool operator==(const State&) const = default;
  };

  struct HashState {
    std::size_t operator()(const State& s) const {
      std::uint64_t h = 1469598103934665603ULL;
      auto mix = [&h](std::uint64_t v) { h = (h ^ v) * 1099511628211ULL; };
      mix(s.send.acked | s.send.sent << 8 | s.send.max_sent << 16 |
          std::uint64_t{s.send.queued} << 24 | std::uint64_t{s.send.window} << 32 |
          std::uint64_t{s.send.flow_count} << 40 | std::uint64_t{s.send.flags} << 56);
      mix(s.receive.recv | s.receive.flow_count << 8 | std::uint64_t{s.receive.flags} << 24 |
          std::uint64_t{s.room.used} << 32 | std::uint64_t{s.room.promised} << 40 |
          std::uint64_t{s.consumed} << 48);
      for (const Wire* wire : {&s.data, &s.control}) {
        for (const InFlight& f : *wire) mix(f.kind | f.number << 8 | f.count << 16);
      }
      return static_cast<std::size_t>(h ^ h >> 32);
    }
  };

  static EngineLimits limits_of(const Bounds& b) {
    EngineLimits limits;
    limits.window = b.window;
    return limits;
  }

  State initial() const {
    State s;
    s.send = engine_.fresh_sender(bounds_.start);
    E::on_app_queue(s.send, bounds_.messages);
    s.receive = engine_.fresh_receiver(bounds_.start);
    s.room.capacity = bounds_.buffers;
    return s;
  }

  // --- the network ---------------------------------------------------------------------------

  std::size_t in_flight(const Wire& wire) const {
    return static_cast<std::size_t>(
        std::count_if(wire.begin(), wire.end(), [](const InFlight& f) { return f.kind != 0xff; }));
  }

  void put(Wire& wire, InFlight frame) const {
    const std::size_t n = in_flight(wire);
    if (n >= network_.capacity) return;
    wire[n] = frame;
    if (network_.reorder)
      std::sort(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(n + 1));
  }

  static Wire without(Wire wire, std::size_t index) {
    std::copy(wire.begin() + static_cast<std::ptrdiff_t>(index) + 1, wire.end(),
              wire.begin() + static_cast<std::ptrdiff_t>(index));
    wire.back() = InFlight{};
    return wire;
  }

  void put_control(State& s, const Control<Seq>& c) const {
    if (c.kind == ControlKind::None) return;
    put(s.control, {static_cast<std::uint8_t>(c.kind), c.number, c.count});
  }

  // --- what can happen -----------------------------------------------------------------------

  void expand(const State s) {
    on_application(s);
    on_time(s);
    for (std::size_t i = 0; i < in_flight(s.data); ++i) {
      if (network_.lose) with(s, [&](State& n) { n.data = without(n.data, i); });
      if (i == 0 || network_.reorder) arrive_data(s, i);
    }
    for (std::size_t i = 0; i < in_flight(s.control); ++i) {
      if (network_.lose) with(s, [&](State& n) { n.control = without(n.control, i); });
      if (i == 0 || network_.reorder) arrive_control(s, i);
    }
  }

  void on_application(const State& s) {
    if (engine_.may_send(s.send)) {
      with(s, [&](State& n) { transmit(n, engine_.on_app_send(n.send, 0)); });
    }
    if (s.receive.has(E::Receive::kAckOwed)) {
      with(s, [&](State& n) { put_control(n, E::on_app_ack(n.receive)); });
    }
    if (s.room.used > 0) {
      with(s, [&](State& n) {
        n.room.release();
        ++n.consumed;
      });
    }
    if (s.receive.has(E::Receive::kRefused) && s.room.unpromised() > 0) {
      with(s, [&](State& n) {
        n.room.promise(n.receive);
        put_control(n, E::on_app_room(n.receive, 1));
      });
    }
  }

  void on_time(const State& s) {
    if (!s.send.has(E::Send::kArmed)) return;
    with(s, [&](State& n) {
      if (engine_.on_timer(n.send, n.send.deadline) == TimerAction::Probe) {
        transmit(n, E::plus(n.send.acked, 1));
      }
    });
  }

  void arrive_data(const State& s, std::size_t i) {
    for (const bool keep : {false, true}) {
      if (keep && !network_.duplicate) continue;
      with(s, [&](State& n) {
        const Seq number = n.data[i].number;
        if (!keep) n.data = without(n.data, i);
        const Seq expected = E::plus(n.receive.recv, 1);
        const auto result =
            engine_.on_packet_data(n.receive, number, n.room.has_room_for(n.receive));
        if (result.arrival == Arrival::Store) {
          if (number != expected) fail("delivered out of order");
          n.room.take(n.receive);
        }
        put_control(n, result.reply);
      });
    }
  }

  void arrive_control(const State& s, std::size_t i) {
    for (const bool keep : {false, true}) {
      if (keep && !network_.duplicate) continue;
      with(s, [&](State& n) {
        const InFlight f = n.control[i];
        if (!keep) n.control = without(n.control, i);
        engine_.on_packet_control(n.send, {ControlKind{f.kind}, f.number, f.count, 1}, 0);
      });
    }
  }

  void transmit(State& s, Seq number) {
    const Seq above = E::minus(number, s.send.acked);
    if (above == 0 || above > bounds_.messages) fail("sends a freed message");
    put(s.data, {0, number, 0});
  }

  // --- the search ----------------------------------------------------------------------------

  template <class Step>
  void with(const State& from, Step step) {
    State next = from;
    step(next);
    forget_time(next);
    check(next);
    visit(next, parent_);
  }

  // Times and timeout counts determine only when something happens, so the search ignores them.
  static void forget_time(State& s) {
    s.send.timed = 0;
    s.send.timed_at = s.send.srtt = s.send.deadline = 0;
    s.send.backoff = s.send.silent = 0;
    s.send.set(E::Send::kTiming, false);
    s.send.set(E::Send::kResent, false);
  }

  void fail(std::string_view what) {
    if (findings_.unsafe.empty()) findings_.unsafe = what;
  }

  void check(const State& s) {
    const Seq stored = E::minus(s.receive.recv, bounds_.start);
    const Seq acked = E::minus(s.send.acked, bounds_.start);
    const Seq sent = E::minus(s.send.sent, bounds_.start);
    const Seq max_sent = E::minus(s.send.max_sent, bounds_.start);
    if (acked > stored) fail("frees a message that was not stored");
    if (acked > sent || sent > max_sent) fail("acked <= sent <= max_sent is broken");
    if (max_sent > acked + bounds_.window) fail("the window is overrun");
    if (s.room.used + s.room.promised > s.room.capacity) fail("the room is overdrawn");
    if (s.consumed + s.room.used != stored) fail("stored and consumed do not add up");
  }

  void visit(const State& s, std::uint32_t parent) {
    const auto [it, is_new] = index_.try_emplace(s, static_cast<std::uint32_t>(states_.size()));
    if (is_new) {
      states_.push_back(s);
      predecessors_.emplace_back();
    }
    if (parent != kNoParent) predecessors_[it->second].push_back(parent);
  }

  bool is_complete(const State& s) const {
    return s.consumed == bounds_.messages &&
           E::minus(s.send.acked, bounds_.start) == bounds_.messages;
  }

  std::size_t count_stuck() const {
    std::vector<bool> good(states_.size());
    std::deque<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      if (!is_complete(states_[i])) continue;
      good[i] = true;
      queue.push_back(i);
    }
    for (; !queue.empty(); queue.pop_front()) {
      for (const std::uint32_t p : predecessors_[queue.front()]) {
        if (good[p]) continue;
        good[p] = true;
        queue.push_back(p);
      }
    }
    return static_cast<std::size_t>(std::count(good.begin(), good.end(), false));
  }

  Bounds bounds_;
  Network network_;
  E engine_;
  Findings findings_;
  std::uint32_t parent_ = kNoParent;
  std::vector<State> states_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::unordered_map<State, std::uint32_t, HashState> index_;
};

}  // namespace score::pm::model
