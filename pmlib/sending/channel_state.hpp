// ChannelState is common to all parts of a channel: its context, its clock, the rules of the
// protocol and the pending operations. Each part owns its further state.
#pragma once

#include "pmlib/core/messages.hpp"
#include "pmlib/core/operations.hpp"
#include "pmlib/core/segment.hpp"

#include <cerrno>
#include <cstdint>

namespace score::pm {

// ChannelClock reads the job's clock at most once per turn.
class ChannelClock {
 public:
  explicit ChannelClock(JobClock& clock) : clock_(clock), now_(clock.now()) {}

  // Returns the time of this turn.
  Microseconds refresh() {
    if (!is_fresh_) {
      now_ = clock_.now();
      is_fresh_ = true;
    }
    return now_;
  }

  // Returns the time of the last refresh().
  Microseconds now() const { return now_; }

  void begin_turn() { is_fresh_ = false; }

  Microseconds read() { return clock_.now(); }

 private:
  JobClock& clock_;
  Microseconds now_;
  bool is_fresh_ = false;
};

struct ChannelState {
  ChannelState(const Segment& context, JobClock& job_clock, EngineLimits limits)
      : segment(context),
        clock(job_clock),
        engine(with_window(limits, context.header().window)),
        operations(context) {}

  Segment segment;
  ChannelClock clock;
  Engine<> engine;
  Operations operations;

  SegmentHeader& header() const { return segment.header(); }

  Counters& counters() const { return segment.header().counters; }

  PeerState& peer(std::uint32_t rank) const { return segment.peer(rank); }

  std::uint32_t ranks() const { return segment.geometry().size; }

  std::uint32_t payload_bytes() const { return segment.geometry().payload_bytes; }

  // Returns EINVAL if there is no such rank, and EHOSTDOWN if it is dead.
  int check_peer(std::uint32_t rank) const {
    if (rank >= ranks()) return EINVAL;
    return peer(rank).dead != 0 ? EHOSTDOWN : 0;
  }

 private:
  static EngineLimits with_window(EngineLimits limits, std::uint16_t window) {
    limits.window = window;
    return limits;
  }
};

}  // namespace score::pm
