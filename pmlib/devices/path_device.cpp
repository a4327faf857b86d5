// Two PathDevices exchange the following frames in addition to those that they pass through. All
// three are sealed like any frame. Reassembled pieces are a frame with a seal of its own, which the
// channel checks, so wrong pieces can spoil a frame but never change one.
//
//   Probe        probe() is its number; the payload only gives it the required size
//   ProbeAnswer  probe() is the number of the probe that arrived
//   Piece        number piece_index() of piece_count() equal parts of a frame of frame_bytes();
//                frame_number() is the same for all parts, and the last part may be shorter
#include "pmlib/devices/path_device.hpp"

#include "pmlib/wire/frame_fields.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace score::pm {

namespace {

constexpr std::size_t kPuzzles = 16;      // frames that may arrive in pieces at the same time
constexpr std::size_t kMostPieces = 64;   // of a frame
constexpr std::uint32_t kSuspicious = 3;  // resent batches
constexpr Microseconds kRefusedLong = 20'000;
constexpr unsigned kProbeEvery = 64;  // polls for frames
constexpr std::uint32_t kProbedAtOnce = 16;

FrameIdentity identity_of(const Segment& segment) {
  const SegmentHeader& h = segment.header();
  return {h.key, h.generation, h.rank, segment.geometry().size, h.channel, h.auth};
}

// Returns the bytes per part of `total` bytes in `parts` parts.
std::size_t part_bytes(std::size_t total, std::size_t parts) {
  return (total + parts - 1) / parts;
}

}  // namespace

// The Sorter is between the link and the device or channel above.
class PathDevice::Sorter final : public FrameSink {
 public:
  Sorter(PathDevice& device, FrameSink& sink) : device_(device), sink_(sink) {}

  void on_frame(std::span<const std::byte> frame) override {
    if (!device_.take(sink_, frame)) sink_.on_frame(frame);
  }

  void on_refused(const PeerAddress& address) override { sink_.on_refused(address); }

 private:
  PathDevice& device_;
  FrameSink& sink_;
};

PathDevice::PathDevice(const Segment& segment, std::unique_ptr<PacketDevice> inner,
                       std::size_t link, Now now)
    : segment_(segment), inner_(std::move(inner)), link_(link), now_(std::move(now)) {
  const std::size_t whole = sizeof(FrameHeader) + segment_.geometry().payload_bytes;
  const std::size_t largest = std::min(whole, inner_->frame_bytes());
  const PathLimits limits{.ceiling = std::max(largest, PathLimits().floor)};
  for (std::uint32_t i = 0; i < segment_.geometry().size; ++i) {
    const auto& send = segment_.peer(i).send;
    paths_.push_back({.size = PathSize(limits), .highest = send.max_sent, .acked = send.acked});
  }
  scratch_.resize(limits.ceiling + kMostPieces * (sizeof(FrameHeader) + 1));
  puzzles_.resize(kPuzzles);
  puzzle_bytes_.resize(kPuzzles * limits.ceiling);
}

// --- sending -----------------------------------------------------------------------------------

std::size_t PathDevice::send(const PeerAddress& to, std::span<const FrameOut> frames) {
  const FrameHeader first = header_of(frames[0].head);
  if (first.destination >= paths_.size()) return inner_->send(to, frames);
  Path& path = paths_[first.destination];
  if (is_sequenced(first.kind) && watch(path, first, frames)) probe(first.destination);
  const std::size_t limit = path.size.limit();
  std::size_t sent = 0;
  while (sent < frames.size()) {
    std::size_t run = sent;
    while (run < frames.size() && frames[run].size() <= limit) ++run;
    if (run > sent) {
      const std::size_t n = inner_->send(to, frames.subspan(sent, run - sent));
      sent += n;
      if (n > 0) path.is_refused = false;
      if (sent < run) {
        note_refusal(path, frames[sent].size());
        break;
      }
    } else if (send_pieces(to, frames[sent], limit)) {
      ++sent;
      path.is_refused = false;
    } else {
      note_refusal(path, limit);
      break;
    }
  }
  const std::uint32_t last =
      SequencedFrame(first).sequence() + static_cast<std::uint32_t>(sent) - 1;
  if (is_sequenced(first.kind) && sent > 0 && distance(last, path.highest) > 0) path.highest = last;
  return sent;
}

// Returns true if a probe may be due. Large frames that were sent whole and are resent raise a
// suspicion; an acknowledgement ends it.
bool PathDevice::watch(Path& path, const FrameHeader& first,
                       std::span<const FrameOut> frames) const {
  const auto largest =
      std::max_element(frames.begin(), frames.end(),
                       [](const FrameOut& a, const FrameOut& b) { return a.size() < b.size(); });
  if (largest->size() <= PathLimits().floor) return path.is_wanted;
  path.is_wanted |= largest->size() > path.size.limit();
  const bool is_again = distance(SequencedFrame(first).sequence(), path.highest) <= 0;
  if (!is_again || ++path.suspicion < kSuspicious) return path.is_wanted;
  path.suspicion = 0;
  path.size.on_suspicion();
  path.is_wanted |= largest->size() > path.size.limit();
  return path.is_wanted;
}

// A link may refuse a frame that is too long for it as if its queue were full. Nothing is then
// sent, so no loss would show it.
void PathDevice::note_refusal(Path& path, std::size_t bytes) const {
  if (bytes <= PathLimits().floor) return;
  const Microseconds now = now_();
  if (!path.is_refused) path.refused_at = now;
  path.is_refused = !time_reached(now, path.refused_at + kRefusedLong);
  if (path.is_refused) return;
  path.size.on_suspicion();
  path.is_wanted = true;
}

bool PathDevice::send_pieces(const PeerAddress& to, const FrameOut& frame, std::size_t limit) {
  const std::size_t room = limit - sizeof(FrameHeader);
  const std::size_t parts = (frame.size() + room - 1) / room;
  if (parts > kMostPieces || frame.size() > inner_->frame_bytes()) return true;  // counts as lost
  const std::size_t each = part_bytes(frame.size(), parts);
  FrameHeader h = header_of(frame.head);
  h.kind = FrameKind::Piece;
  h.flags = 0;
  const PieceFrame piece(h);
  piece.frame_number() = ++piece_number_;
  piece.frame_bytes() = static_cast<std::uint32_t>(frame.size());
  piece.piece_count() = static_cast<std::uint16_t>(parts);
  std::array<FrameOut, kMostPieces> pieces;
  std::byte* at = scratch_.data();
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t start = i * each;
    const std::size_t bytes = std::min(each, frame.size() - start);
    std::byte* payload = at + sizeof h;
    const std::size_t of_head =
        start < frame.head.size() ? std::min(bytes, frame.head.size() - start) : 0;
    if (of_head > 0) std::memcpy(payload, frame.head.data() + start, of_head);
    if (bytes > of_head) {
      std::memcpy(payload + of_head, frame.body.data() + (start + of_head - frame.head.size()),
                  bytes - of_head);
    }
    piece.piece_index() = static_cast<std::uint16_t>(i);
    h.length = static_cast<std::uint16_t>(bytes);
    seal_note(h, {payload, bytes});
    std::memcpy(at, &h, sizeof h);
    pieces[i] = {{at, sizeof h + bytes}, {}};
    at = payload + bytes;
  }
  return inner_->send(to, {pieces.data(), parts}) == parts;
}

void PathDevice::seal_note(FrameHeader& h, std::span<const std::byte> payload) const {
  const SegmentHeader& me = segment_.header();
  if (me.auth == FrameAuth::Tag) {
    seal_by_tag(h, me.key, {}, payload);
  } else {
    seal(h, crc32c(0, payload.data(), payload.size()));
  }
}

void PathDevice::probe(std::uint32_t rank) {
  if (segment_.peer(rank).dead != 0) return;
  const PathSize::Probe probe = paths_[rank].size.on_turn(now_());
  if (probe.bytes == 0) return;
  send_note(rank, FrameKind::Probe, probe.number, probe.bytes);
  send_note(rank, FrameKind::Probe, probe.number + 1, sizeof(FrameHeader));
}

// Sends a frame of `bytes` in total.
void PathDevice::send_note(std::uint32_t rank, FrameKind kind, std::uint32_t number,
                           std::size_t bytes) {
  const SegmentHeader& me = segment_.header();
  FrameHeader h;
  h.kind = kind;
  h.channel = me.channel;
  h.key = me.key;
  h.generation = me.generation;
  h.source = me.rank;
  h.destination = rank;
  ProbeFrame(h).probe() = number;
  h.length = static_cast<std::uint16_t>(bytes - sizeof h);
  const std::span<std::byte> payload(scratch_.data() + sizeof h, h.length);
  std::fill(payload.begin(), payload.end(), std::byte{0});
  seal_note(h, payload);
  std::memcpy(scratch_.data(), &h, sizeof h);
  const FrameOut frame{{scratch_.data(), bytes}, {}};
  inner_->send(segment_.link_address(link_, rank), {&frame, 1});
}

// --- receiving ---------------------------------------------------------------------------------

std::size_t PathDevice::receive(FrameSink& sink, std::size_t limit) {
  Sorter sorter(*this, sink);
  const std::size_t count = inner_->receive(sorter, limit);
  if (count == 0 && ++turns_ % kProbeEvery != 0) return count;
  const auto size = static_cast<std::uint32_t>(paths_.size());
  for (std::uint32_t i = 0; i < std::min(size, kProbedAtOnce); ++i) {
    const std::uint32_t rank = next_probed_++ % size;
    if (paths_[rank].is_wanted) probe(rank);
  }
  return count;
}

// Returns false if the frame is for the channel.
bool PathDevice::take(FrameSink& sink, std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FrameHeader)) return false;
  FrameHeader h = header_of(frame);
  if (!is_of_path(h.kind)) {
    if (h.source >= paths_.size()) return false;
    // The checksum is not verified yet: at worst a suspicion ends too soon.
    Path& path = paths_[h.source];
    const std::uint32_t acked = is_control(h.kind) ? h.number : ChannelFrame(h).stored();
    if (path.suspicion > 0 && distance(acked, path.acked) > 0) path.suspicion = 0;
    path.acked = acked;
    return false;
  }
  if (check_frame(frame, identity_of(segment_), h, is_of_path) != FrameVerdict::Good) return false;
  if (segment_.peer(h.source).dead != 0) return true;
  switch (h.kind) {
    case FrameKind::Probe:
      send_note(h.source, FrameKind::ProbeAnswer, ProbeFrame(h).probe(), sizeof h);
      break;
    case FrameKind::ProbeAnswer:
      paths_[h.source].size.on_answer(ProbeFrame(h).probe(), now_());
      break;
    default:
      add_piece(sink, h, frame.subspan(sizeof h));
  }
  return true;
}

void PathDevice::add_piece(FrameSink& sink, const FrameHeader& h,
                           std::span<const std::byte> payload) {
  const std::size_t space = puzzle_bytes_.size() / kPuzzles;
  const PieceFrame piece(h);
  const std::size_t parts = piece.piece_count();
  const std::size_t total = piece.frame_bytes();
  if (total < sizeof(FrameHeader) || total > space || parts < 2 || parts > kMostPieces ||
      piece.piece_index() >= parts) {
    return;
  }
  const std::size_t each = part_bytes(total, parts);
  const std::size_t start = piece.piece_index() * each;
  if (start >= total || payload.size() != std::min(each, total - start)) return;
  Reassembly& puzzle = puzzle_for(h);
  std::byte* bytes = &puzzle_bytes_[static_cast<std::size_t>(&puzzle - puzzles_.data()) * space];
  std::memcpy(bytes + start, payload.data(), payload.size());
  puzzle.missing &= ~(std::uint64_t{1} << piece.piece_index());
  if (puzzle.missing != 0) return;
  puzzle.total = 0;
  sink.on_frame({bytes, total});
}

// Returns the entry where the pieces of this frame are reassembled, or evicts the oldest entry.
PathDevice::Reassembly& PathDevice::puzzle_for(const FrameHeader& h) {
  const PieceFrame piece(h);
  const auto known = std::find_if(puzzles_.begin(), puzzles_.end(), [&](const Reassembly& p) {
    return p.total == piece.frame_bytes() && p.source == h.source &&
           p.number == piece.frame_number() && p.pieces == piece.piece_count();
  });
  if (known != puzzles_.end()) return *known;
  Reassembly& place = puzzles_[puzzle_turn_++ % puzzles_.size()];
  const unsigned count = piece.piece_count();
  const std::uint64_t all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  place = {h.source, piece.frame_number(), piece.frame_bytes(), piece.piece_count(), all};
  return place;
}

}  // namespace score::pm
