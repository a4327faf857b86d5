#pragma once
// Sends the heartbeats of one member: it decides when to beat, to which member, and when over TLS.
//
// A round begins once per period. It asks the member that answered last; without an answer it asks
// the next ancestor, up to the head. When the head does not answer either, or an answer takes too
// long, a beat goes over TLS, so that no node is suspected on a network without UDP.

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
      TimePoint sent{};  // identifies the clock exchange; the answer repeats it
    };

    std::optional<Beat> beat;
    bool beat_by_tls = false;
    bool doubts = false;  // if nothing came from the head over TLS, inform it
  };

  // `self` is any member but the head (self >= 1). Rounds begin at first_beat and whole periods
  // later.
  BeatSender(const Tree& tree, Position self, const BeatTiming& timing, TimePoint first_beat);

  // Does what is due. After each call, and after hasten(), the caller must read next_deadline()
  // again.
  Actions advance(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  // Starts a round soon, even if one is under way. The caller uses it when the content of the next
  // beat has changed.
  void hasten(TimePoint now);

  struct Answer {
    TimePoint sent{};        // time of the beat that is answered
    bool is_linked = false;  // its sender has a link to the head, see is_linked(); or is the head
    std::optional<Position> go_back;  // a nearer ancestor that answers again; it gets the next beat
  };

  // Takes an answer. Returns false if it does not answer a beat of this round or is a repetition;
  // it must not be used for clocks then. A member without a link to the head cannot report this one
  // as alive, so its answer makes a beat over TLS due.
  bool answered(Position from, const Answer& answer, TimePoint now);

  // Returns true if the last round that has ended was answered by a member with a link to the head.
  [[nodiscard]] bool is_linked() const { return is_linked_; }

  // Returns true if a whole round, up to the head, had no answer and no beat has been answered
  // since. Other members may hear this member, but it does not hear them. Its messages are no sign
  // of life then.
  [[nodiscard]] bool is_deaf() const { return is_deaf_; }

  [[nodiscard]] Position target() const { return way_[target_]; }

  // Returns the number of rounds that were answered by a different member than the round before.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }

 private:
  void begin_round(TimePoint now);
  bool ask_next();

  BeatTiming timing_;
  std::vector<Position> way_;          // ancestors, nearest first
  std::size_t target_ = 0;             // index into way_
  std::size_t served_by_ = 0;          // index into way_
  TimePoint round_at_;                 // start of the next round
  std::optional<TimePoint> retry_at_;  // set while a round is under way
  std::optional<TimePoint> tls_at_;
  std::optional<TimePoint> doubt_at_;
  TimePoint first_beat_;
  std::vector<TimePoint> sent_;  // times of this round's beats to target_
  bool is_linked_ = false;
  bool is_deaf_ = false;
  std::uint64_t moves_ = 0;
  // After a failed return to a nearer ancestor, this many rounds pass until the next attempt. The
  // number doubles with each failure.
  std::uint32_t stay_ = 0, stay_next_ = 1;
  bool went_back_ = false;
};

}  // namespace score::gang
