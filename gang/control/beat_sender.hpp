#pragma once
// Heartbeats of one member, the sending side: when to beat, to which member, and when over TLS.
//
// A round begins once per period. It asks the member that answered last; without answer the next
// ancestor, up to the head. When the head does not answer either, or an answer takes too long, a
// beat goes over TLS, so that no node is suspected on a network without UDP.

#include "gang/control/beat_timing.hpp"
#include "gang/control/tree.hpp"

#include <optional>
#include <vector>

namespace score::gang {

class BeatSender {
 public:
  struct Actions {
    struct Beat {
      Position to = 0;
      TimePoint sent{};  // the clock question; the answer repeats it
    };

    std::optional<Beat> beat;
    bool beat_by_tls = false;
    bool doubts = false;  // has anything come from the head, over TLS? Else it is to be told
  };

  // For every member but the head (self >= 1). Rounds begin at first_beat and whole periods later.
  BeatSender(const Tree& tree, Position self, const BeatTiming& timing, TimePoint first_beat);

  // Does what is due. After each call and after hasten(): next_deadline().
  Actions advance(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  // What the next beat says has changed: a round begins soon, even if one is under way.
  void hasten(TimePoint now);

  struct Answer {
    TimePoint sent{};        // of the beat
    bool is_linked = false;  // its sender is linked to the head, see is_linked(); the head is
    std::optional<Position> go_back;  // it hears this nearer ancestor, which should be asked now
  };

  // False: not the answer to a beat of this round, or a repeated one: it says nothing about clocks.
  // An answer from a member that is not linked keeps this one alive for no one: a beat over TLS
  // is due.
  bool answered(Position from, const Answer& answer, TimePoint now);

  // The last round that has ended was answered by a member that is linked to the head.
  [[nodiscard]] bool is_linked() const { return is_linked_; }

  // A whole round, up to the head, has had no answer, and no beat since: others may hear this
  // member, but it does not hear them. What it sends is no sign of life then.
  [[nodiscard]] bool is_deaf() const { return is_deaf_; }

  [[nodiscard]] Position target() const { return way_[target_]; }

  // Rounds that another member than the one before answered.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }

 private:
  void begin_round(TimePoint now);
  bool ask_next();

  BeatTiming timing_;
  std::vector<Position> way_;          // ancestors, nearest first
  std::size_t target_ = 0;             // into way_
  std::size_t served_by_ = 0;          // into way_
  TimePoint round_at_;                 // the next one
  std::optional<TimePoint> retry_at_;  // a round is under way
  std::optional<TimePoint> tls_at_;
  std::optional<TimePoint> doubt_at_;
  TimePoint first_beat_;
  std::vector<TimePoint> sent_;  // this round's beats to target_
  bool is_linked_ = false;
  bool is_deaf_ = false;
  std::uint64_t moves_ = 0;
  // A way back that has failed is not tried again for this many rounds, twice as many each time.
  std::uint32_t stay_ = 0, stay_next_ = 1;
  bool went_back_ = false;
};

}  // namespace score::gang
