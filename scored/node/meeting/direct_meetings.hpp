// The meetings of a job's nodes without the head: each node's switcher tells the others of the job,
// by a dissemination barrier over the thread's own PM context. What is not met within kPatience is
// reported to the head besides, which may know of a node that does not come any more.
#pragma once

#include "gang/control/dissemination.hpp"
#include "scored/node/meeting/meeting_channel.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace score::node {

// One attempt's. Made by the main thread, then the switcher's.
class DirectGang {
 public:
  // ranks: [member] in the PM network of the daemons; self: this node's member, < ranks.size().
  DirectGang(AttemptId attempt, std::vector<std::uint32_t> ranks, std::uint32_t self);

  // Each member has a channel: main thread.
  [[nodiscard]] bool is_reached_by(const MeetingChannel& channel) const;

  // The functions below: the switcher's thread.
  void come(base::Meeting meeting, TimePoint boundary, TimePoint now, MeetingChannel& channel);
  // This node does not need the meeting: it takes part once another node does.
  void come_quietly(base::Meeting meeting, TimePoint boundary, TimePoint now,
                    MeetingChannel& channel);
  void hear(const MeetingChannel::Received& received, TimePoint now, MeetingChannel& channel);
  [[nodiscard]] bool has_met(base::Meeting meeting, TimePoint boundary) const;
  // Asks for what is missing, if it is time to; then when to call again.
  std::optional<TimePoint> advance(TimePoint now, MeetingChannel& channel);

  // A meeting that this member has come to, and that should be reported to the head now; once each.
  struct Overdue {
    base::Meeting meeting;
    TimePoint boundary;
  };

  [[nodiscard]] std::optional<Overdue> take_overdue(TimePoint now);

 private:
  static constexpr Duration kPatience = std::chrono::milliseconds{2};

  struct One {
    gang::Dissemination barrier;
    TimePoint boundary{};
    TimePoint report_at = TimePoint::max();
  };

  [[nodiscard]] One& one(base::Meeting meeting) { return all_[static_cast<std::size_t>(meeting)]; }

  void send(base::Meeting meeting, const gang::Dissemination::Sends& sends,
            MeetingChannel& channel) const;

  AttemptId attempt_;
  std::vector<std::uint32_t> ranks_;
  std::array<One, base::kMeetings> all_;
};

}  // namespace score::node
