#include "scored/node/meeting/meeting_channel.hpp"

#include <cstring>

namespace score::node {

MeetingDatagram encode(const MeetingWord& word) noexcept {
  MeetingDatagram bytes;
  bytes.meeting = static_cast<std::uint8_t>(word.meeting);
  bytes.round = static_cast<std::uint8_t>(word.word.round);
  bytes.asks = word.word.asks ? 1 : 0;
  bytes.attempt = word.attempt.value();
  bytes.boundary_ns = word.word.boundary.time_since_epoch().count();
  return bytes;
}

std::optional<MeetingWord> decode(std::span<const std::byte> bytes) noexcept {
  MeetingDatagram d;
  if (bytes.size() != sizeof d) return std::nullopt;
  std::memcpy(&d, bytes.data(), sizeof d);
  if (d.type != MeetingDatagram::kType || d.version != MeetingDatagram::kVersion ||
      d.meeting >= base::kMeetings || d.round >= gang::Dissemination::kMaxRounds || d.asks > 1 ||
      d.reserved != 0) {
    return std::nullopt;
  }
  return MeetingWord{AttemptId{d.attempt},
                     static_cast<base::Meeting>(d.meeting),
                     {TimePoint(Duration(d.boundary_ns)), d.round, d.asks != 0}};
}

bool MeetingChannel::reaches(std::uint32_t rank) const {
  const pm::Segment& segment = endpoint_->segment();
  return rank < endpoint_->size() && segment.peer(rank).address != pm::PeerAddress();
}

void MeetingChannel::send(std::uint32_t rank, const MeetingWord& word) noexcept {
  const MeetingDatagram bytes = encode(word);
  endpoint_->send_datagram({&rank, 1}, std::as_bytes(std::span(&bytes, 1)));
}

std::optional<MeetingChannel::Received> MeetingChannel::receive() noexcept {
  pm::ReceivedMessage message;
  while (endpoint_->receive(message) == 0) {
    const auto word =
        message.kind == pm::FrameKind::Datagram ? decode(message.bytes) : std::nullopt;
    endpoint_->release(message);
    if (word) return Received{message.source, *word};
  }
  return std::nullopt;
}

}  // namespace score::node
