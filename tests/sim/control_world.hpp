#pragma once
// Simulates the daemons' control network in one thread from one seed. It has the real tree,
// heartbeats, clocks and timetable relays of up to 16,384 nodes on a datagram network that loses,
// repeats, delays and reorders. TLS exists in addition; members crash and the head restarts.

#include "gang/control/beat_listener.hpp"
#include "gang/control/beat_sender.hpp"
#include "gang/control/timetable_relay.hpp"
#include "gang/control/tree_verdicts.hpp"
#include "gang/node/clock_filter.hpp"
#include "gang/state/failure_detector.hpp"
#include "tests/sim/events.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::sim {

using gang::Position;

struct ControlOptions {
  std::uint64_t seed = 1;
  std::uint32_t nodes = 1'000;
  std::uint32_t fanout = gang::Tree::kDefaultFanout;
  Duration hop = std::chrono::microseconds{50};     // latency of a datagram
  Duration message = std::chrono::microseconds{2};  // a daemon's time to send or receive one
  Duration tag = std::chrono::nanoseconds{60};      // the head's time to tag it for one node
  double loss = 0;                                  // fraction of datagrams lost, 0 ... 1
  double twice = 0;                                 // fraction that arrives again, later
  double reordered = 0;                             // fraction that arrives up to 2 ms late
  gang::BeatTiming timing{};
};

class ControlWorld {
 public:
  explicit ControlWorld(const ControlOptions& options);

  void run_for(Duration time);

  [[nodiscard]] TimePoint now() const { return events_.now(); }

  void crash(Position position);
  void restart_head();  // with a new roster of all living members

  void cut_datagrams(bool cut) { is_cut_ = cut; }

  [[nodiscard]] const gang::Tree& tree() const { return tree_; }

  // Describes a publication until every node has received it, or TLS must carry it.
  struct Publication {
    Duration last{0};           // until the last node had it by datagram
    Duration ended{0};          // until the head knew
    std::size_t missing = 0;    // nodes that TLS serves
    std::size_t head_sent = 0;  // datagrams
  };

  // Publishes `kinds` different timetables for ranges of nodes of equal size, of `bytes` each.
  Publication publish(std::uint32_t kinds, std::size_t bytes);

  struct Counts {
    std::uint64_t sent = 0, received = 0, tls = 0;
  };

  // Returns the counts of the head since the last call.
  Counts take_head_counts();

  // Returns the nodes that the head's detector suspects.
  [[nodiscard]] std::vector<Position> suspects() const;
  [[nodiscard]] std::optional<TimePoint> suspected_at(Position position) const;

  // Returns the number of verdicts against living nodes so far.
  [[nodiscard]] std::uint64_t false_suspicions() const { return false_suspicions_; }

  [[nodiscard]] std::uint64_t false_deaths() const { return false_deaths_; }

  // Returns the time from the last crash until a beat of this member was answered.
  [[nodiscard]] Duration first_served_after_crash(Position position) const;

  // Returns the longest time of a member without an answer over PM, from its first request.
  [[nodiscard]] Duration worst_wait() const { return worst_wait_; }

  void forget_waits() { worst_wait_ = {}; }

  struct Clocks {
    Duration worst_error{0}, worst_bound{0};
    std::size_t unknown = 0;
    bool all_within = true;  // every error is within its bound
  };

  [[nodiscard]] Clocks clocks() const;
  // Returns true if the head knows that every living node lives.
  [[nodiscard]] bool is_all_known() const;

 private:
  struct Answer {
    gang::BeatSender::Answer beat;
    gang::ClockSample sample;
    bool has_clock = false;
  };

  struct Member {
    Duration offset{0};
    double drift = 0;
    bool is_alive = true;
    std::uint64_t life = 0;
    TimePoint busy_until{};
    std::optional<gang::BeatSender> sender;
    std::optional<gang::BeatListener> listener;  // none at the head
    std::optional<gang::TreeVerdicts> verdicts;  // only at the head
    std::optional<gang::TimetableRelay> relay;
    gang::ClockFilter clock;
    TimePoint wakes_at = TimePoint::max();
    std::optional<TimePoint> asked_first;  // of the current round, in world time
    std::optional<TimePoint> served_after_crash;
    std::uint64_t has = 0;  // newest publication
    std::optional<TimePoint> suspected;
  };

  void build(Position position);
  [[nodiscard]] TimePoint local(Position position) const;
  [[nodiscard]] TimePoint cluster_time(Position position) const;
  void send(Position from, Position to, std::function<void()> arrive);
  void wake(Position position);
  void arm(Position position);
  void advance(Position position);
  void beat(Position from, const gang::BeatSender::Actions& actions);
  void hear_beat(Position at, Position from, const gang::SubtreeSummary& summary, TimePoint asked);
  void hear_answer(Position at, Position from, Answer answer);
  void apply(const gang::TreeVerdicts::Findings& findings);
  [[nodiscard]] gang::SubtreeSummary summary_of(Position position) const;
  void judge();
  void carry_out(Position at, const gang::TimetableRelay::Actions& actions);

  ControlOptions options_;
  Events events_;
  Chance chance_;
  gang::Tree tree_;
  std::vector<Member> members_;
  gang::FailureDetector detector_;
  bool is_cut_ = false;
  Counts head_;
  std::uint64_t false_suspicions_ = 0, false_deaths_ = 0;
  Duration worst_wait_{0};
  TimePoint crashed_at_{};
  std::uint32_t published_ = 0;
  TimePoint published_at_{};
  Publication publication_;
  bool publication_over_ = false;
};

}  // namespace score::sim
