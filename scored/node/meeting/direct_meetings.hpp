// Lets the nodes of a job meet without the head. Each node's switcher notifies the other nodes of
// the job, by a dissemination barrier over the PM context of its thread. A meeting that is not
// complete within kTimeout is also reported to the head, which may know that a node will not come.
#pragma once

#include "gang/control/dissemination.hpp"
#include "scored/node/meeting/meeting_channel.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace score::node {

// Belongs to one attempt. The main thread makes it and hands it over to the switcher's thread.
class DirectGang {
 public:
  // `ranks` are the members' ranks in the PM network of the daemons. `self` is this node's member,
  // < ranks.size().
  DirectGang(AttemptId attempt, std::vector<std::uint32_t> ranks, std::uint32_t self);

  // Returns true if each member has a channel. Thread: the main one.
  [[nodiscard]] bool is_reached_by(const MeetingChannel& channel) const;

  // The functions below are for the switcher's thread.
  void come(base::Meeting meeting, TimePoint boundary, TimePoint now, MeetingChannel& channel);
  // This node does not need the meeting; it takes part once a different node does.
  void come_quietly(base::Meeting meeting, TimePoint boundary, TimePoint now,
                    MeetingChannel& channel);
  void hear(const MeetingChannel::Received& received, TimePoint now, MeetingChannel& channel);
  [[nodiscard]] bool has_met(base::Meeting meeting, TimePoint boundary) const;
  // Sends the requests for missing words that are due. Returns when it must be called again.
  std::optional<TimePoint> advance(TimePoint now, MeetingChannel& channel);

  // Describes a meeting that this member has reached and that should be reported to the head now;
  // once per meeting.
  struct Overdue {
    base::Meeting meeting;
    TimePoint boundary;
  };

  [[nodiscard]] std::optional<Overdue> take_overdue(TimePoint now);

 private:
  static constexpr Duration kTimeout = std::chrono::milliseconds{2};

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
