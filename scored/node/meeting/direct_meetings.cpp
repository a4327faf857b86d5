#include "scored/node/meeting/direct_meetings.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

DirectGang::DirectGang(AttemptId attempt, std::vector<std::uint32_t> ranks, std::uint32_t self)
    : attempt_(attempt),
      ranks_(std::move(ranks)),
      all_{One{gang::Dissemination(self, static_cast<std::uint32_t>(ranks_.size()))},
           One{gang::Dissemination(self, static_cast<std::uint32_t>(ranks_.size()))}} {}

bool DirectGang::is_reached_by(const MeetingChannel& channel) const {
  return std::ranges::all_of(ranks_, [&](std::uint32_t rank) { return channel.reaches(rank); });
}

void DirectGang::send(base::Meeting meeting, const gang::Dissemination::Sends& sends,
                      MeetingChannel& channel) const {
  for (const auto& [to, word] : sends.all()) channel.send(ranks_[to], {attempt_, meeting, word});
}

void DirectGang::come(base::Meeting meeting, TimePoint boundary, TimePoint now,
                      MeetingChannel& channel) {
  One& it = one(meeting);
  it.boundary = boundary;
  it.report_at = now + kTimeout;
  send(meeting, it.barrier.come(boundary, now), channel);
}

void DirectGang::come_quietly(base::Meeting meeting, TimePoint boundary, TimePoint now,
                              MeetingChannel& channel) {
  One& it = one(meeting);
  it.boundary = boundary;
  send(meeting, it.barrier.come_quietly(boundary, now), channel);
  it.report_at = it.barrier.is_quiet() ? TimePoint::max() : now + kTimeout;
}

void DirectGang::hear(const MeetingChannel::Received& received, TimePoint now,
                      MeetingChannel& channel) {
  const auto from = std::ranges::find(ranks_, received.source);
  if (from == ranks_.end()) return;
  const auto member = static_cast<std::uint32_t>(from - ranks_.begin());
  const base::Meeting meeting = received.word.meeting;
  One& it = one(meeting);
  const bool was_quiet = it.barrier.is_quiet();
  send(meeting, it.barrier.hear(member, received.word.word, now), channel);
  if (was_quiet && !it.barrier.is_quiet()) it.report_at = now + kTimeout;
}

bool DirectGang::has_met(base::Meeting meeting, TimePoint boundary) const {
  return all_[static_cast<std::size_t>(meeting)].barrier.has_met(boundary);
}

std::optional<TimePoint> DirectGang::advance(TimePoint now, MeetingChannel& channel) {
  std::optional<TimePoint> next;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    One& it = all_[i];
    send(static_cast<base::Meeting>(i), it.barrier.advance(now), channel);
    const auto due = it.barrier.next_deadline();
    if (!due) continue;
    const TimePoint wake = std::min(*due, it.report_at);
    next = std::min(next.value_or(wake), wake);
  }
  return next;
}

std::optional<DirectGang::Overdue> DirectGang::take_overdue(TimePoint now) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    One& it = all_[i];
    if (now < it.report_at) continue;
    it.report_at = TimePoint::max();
    if (!it.barrier.has_met(it.boundary))
      return Overdue{static_cast<base::Meeting>(i), it.boundary};
  }
  return std::nullopt;
}

}  // namespace score::node
