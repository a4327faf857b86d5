// This file spreads frames over links and gathers them.
//
// Sending: a burst goes whole to one link and the next burst to the next link, more often to links
// of more weight. Single frames stay on one link: an application is waiting for them, and over two
// links they could only overtake each other. When a peer resends numbers that were received, the
// acknowledgements may have been lost. From then on single frames use the next link. Control
// frames, which may arrive twice, use all links until a new number arrives.
//
// Receiving: a frame with a higher number than the next to be stored waits in a small table until
// the missing frames have arrived over a different link. If nothing arrives for some turns, the
// oldest frame is passed on, and the go-back-N above sends LOSE as over a single link. Before
// sleeping all frames are passed on.
//
// Dead links: when the go-back-N resends a number, the link that carried it first is blamed. It is
// praised when an acknowledgement covers a burst that was not resent. A link blamed three times in
// a row rests for a number of bursts, twice as long each time.
#include "pmlib/devices/trunk_device.hpp"

#include "pmlib/wire/frame_fields.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <unistd.h>

namespace score::pm {

namespace {

constexpr std::int32_t kFar = 4096;            // wider than any window
constexpr std::uint32_t kPatientTurns = 2000;  // some hundred microseconds of polling
constexpr std::uint32_t kMaxBlame = 3;
constexpr std::uint32_t kLongestRest = 1 << 14;

}  // namespace

// The Sorter is between a link and the channel.
class TrunkDevice::Sorter final : public FrameSink {
 public:
  Sorter(TrunkDevice& trunk, FrameSink& sink) : trunk_(trunk), sink_(sink) {}

  void on_frame(std::span<const std::byte> frame) override { trunk_.hand_on(sink_, frame); }

 private:
  TrunkDevice& trunk_;
  FrameSink& sink_;
};

std::unique_ptr<TrunkDevice> TrunkDevice::make(const Segment& segment, Links links, int& error) {
  error = EINVAL;
  if (links.empty() || links.size() > kMaxLinks) return nullptr;
  std::unique_ptr<TrunkDevice> trunk(new TrunkDevice(segment, std::move(links)));
  error = trunk->watch_links();
  if (error != 0) trunk.reset();
  return trunk;
}

TrunkDevice::TrunkDevice(const Segment& segment, Links links)
    : segment_(segment), highest_sent_(segment.geometry().size), early_(segment.header().window) {
  frame_bytes_ = links[0]->frame_bytes();
  batch_frames_ = links[0]->batch_frames();
  for (auto& device : links) {
    frame_bytes_ = std::min(frame_bytes_, device->frame_bytes());
    batch_frames_ = std::min(batch_frames_, device->batch_frames());
    wants_joined_ &= device->wants_joined();
    const std::uint8_t weight = segment.header().link_weights[links_.size()];
    links_.push_back({.device = std::move(device), .weight = std::max<std::int32_t>(1, weight)});
  }
  early_bytes_.resize(early_.size() * frame_bytes_);
  for (std::uint32_t i = 0; i < segment.geometry().size; ++i) {
    highest_sent_[i] = segment.peer(i).send.max_sent;
  }
}

TrunkDevice::~TrunkDevice() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

int TrunkDevice::watch_links() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return errno;
  for (const Link& link : links_) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, link.device->poll_fd(), &event) != 0) return errno;
  }
  return 0;
}

std::uint32_t TrunkDevice::dropped() const {
  std::uint32_t sum = 0;
  for (const Link& link : links_) sum += link.device->dropped();
  return sum;
}

// --- sending -----------------------------------------------------------------------------------

std::size_t TrunkDevice::send(const PeerAddress&, std::span<const FrameOut> frames) {
  const FrameHeader first = header_of(frames[0].head);
  if (first.destination >= highest_sent_.size()) return 0;
  if (!is_sequenced(first.kind) && duplicates_ > 0) return send_by_all(first.destination, frames);
  std::size_t index = pick_link(first, frames.size());
  std::size_t sent = 0;
  // A link that takes nothing is full or down, so the next link is tried.
  for (std::size_t i = 0; i < links_.size() && sent == 0; ++i) {
    if (i > 0) index = (index + 1) % links_.size();
    sent = links_[index].device->send(segment_.link_address(index, first.destination), frames);
  }
  if (!is_sequenced(first.kind) || sent == 0) return sent;
  const std::uint32_t last =
      SequencedFrame(first).sequence() + static_cast<std::uint32_t>(sent) - 1;
  std::uint32_t& highest = highest_sent_[first.destination];
  if (distance(last, highest) > 0) highest = last;
  bursts_[burst_turn_++ % bursts_.size()] = {first.destination, SequencedFrame(first).sequence(),
                                             last, static_cast<std::uint16_t>(index), true};
  return sent;
}

std::size_t TrunkDevice::send_by_all(std::uint32_t rank, std::span<const FrameOut> frames) {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    sent = std::max(sent, links_[i].device->send(segment_.link_address(i, rank), frames));
  }
  return sent;
}

std::size_t TrunkDevice::pick_link(const FrameHeader& first, std::size_t count) {
  if (is_sequenced(first.kind) &&
      distance(SequencedFrame(first).sequence(), highest_sent_[first.destination]) <= 0) {
    record_loss(first.destination, SequencedFrame(first).sequence());
  }
  for (Link& link : links_) link.rests -= link.rests > 0 ? 1 : 0;
  if (count == 1) return up_from(single_);
  return most_due();
}

// Distributes bursts in proportion to the weights, as evenly as possible (smooth weighted round
// robin). The other links take over the share of resting links.
std::size_t TrunkDevice::most_due() {
  std::size_t next = links_.size();
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].rests != 0) continue;
    sum += links_[i].weight;
    links_[i].due += links_[i].weight;
    if (next == links_.size() || links_[i].due > links_[next].due) next = i;
  }
  if (next == links_.size()) return ++all_rest_ % links_.size();
  links_[next].due -= sum;
  return next;
}

// Returns the first link from `index` on that is up; if all rest, any link.
std::size_t TrunkDevice::up_from(std::size_t index) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[(index + i) % links_.size()].rests == 0) return (index + i) % links_.size();
  }
  return index % links_.size();
}

void TrunkDevice::record_loss(std::uint32_t rank, std::uint32_t number) {
  for (Burst& burst : bursts_) {
    if (!burst.is_open || burst.rank != rank || distance(number, burst.last) > 0) continue;
    burst.is_open = false;  // will be resent, over any link
    if (distance(number, burst.first) < 0) continue;
    Link& link = links_[burst.link];
    const std::uint32_t limit = link.next_rest > kFirstRest ? 1 : kMaxBlame;
    if (link.rests > 0 || ++link.consecutive_losses < limit) continue;
    link.consecutive_losses = 0;
    link.rests = link.next_rest;
    link.next_rest = std::min(link.next_rest * 2, kLongestRest);
  }
}

void TrunkDevice::record_success(std::uint32_t rank, std::uint32_t acknowledged) {
  for (Burst& burst : bursts_) {
    if (!burst.is_open || burst.rank != rank || distance(acknowledged, burst.last) < 0) continue;
    burst.is_open = false;
    links_[burst.link].consecutive_losses = 0;
    links_[burst.link].next_rest = kFirstRest;
  }
}

// --- receiving ---------------------------------------------------------------------------------

std::size_t TrunkDevice::receive(FrameSink& sink, std::size_t limit) {
  Sorter sorter(*this, sink);
  std::size_t count = 0;
  for (std::size_t i = 0; i < links_.size() && count < limit; ++i) {
    Link& link = links_[(receive_turn_ + i) % links_.size()];
    count += link.device->receive(sorter, limit - count);
  }
  ++receive_turn_;
  if (kept_ == 0) return count;
  empty_turns_ = count > 0 ? 0 : empty_turns_ + 1;
  if (empty_turns_ < kPatientTurns && !must_flush_) return count;
  do {
    hand_on_oldest(sink);
    ++count;
  } while (must_flush_ && kept_ > 0);
  must_flush_ = false;
  empty_turns_ = 0;
  return count;
}

bool TrunkDevice::prepare_to_sleep() {
  must_flush_ = kept_ > 0;
  bool may_sleep = !must_flush_;
  for (Link& link : links_) may_sleep &= link.device->prepare_to_sleep();
  return may_sleep;
}

void TrunkDevice::hand_on(FrameSink& sink, std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FrameHeader) || frame.size() > frame_bytes_) {
    return sink.on_frame(frame);
  }
  const FrameHeader h = header_of(frame);
  if (!is_ours(h)) return sink.on_frame(frame);
  record_success(h.source,
                 h.kind == FrameKind::Ack ? AckFrame(h).acknowledged() : ChannelFrame(h).stored());
  if (!is_sequenced(h.kind)) return sink.on_frame(frame);
  const std::int32_t ahead = ahead_of(h.source, SequencedFrame(h).sequence());
  if (ahead < 0) note_duplicate();
  if (ahead > 0 && ahead < kFar && keep(h, frame)) return;
  sink.on_frame(frame);
  if (ahead != 0) return;
  duplicates_ = 0;
  if (kept_ > 0) hand_on_kept(sink, h.source);
}

// The checksum is not verified here.
bool TrunkDevice::is_ours(const FrameHeader& h) const {
  const SegmentHeader& me = segment_.header();
  return h.source < segment_.geometry().size && h.destination == me.rank &&
         h.channel == me.channel && h.generation == me.generation &&
         (me.auth == FrameAuth::Tag || h.key == me.key);
}

// Returns the distance to the next number to be stored; it is negative for a number stored before.
std::int32_t TrunkDevice::ahead_of(std::uint32_t source, std::uint32_t sequence) const {
  return distance(sequence, segment_.peer(source).receive.recv + 1);
}

// Handles a resent frame that was stored before: perhaps no acknowledgement of this rank has
// arrived.
void TrunkDevice::note_duplicate() {
  if (duplicates_++ == 0) single_ = (single_ + 1) % links_.size();
}

// Returns false if there is no free entry for the frame.
bool TrunkDevice::keep(const FrameHeader& h, std::span<const std::byte> frame) {
  if (kept_ == early_.size()) return false;
  std::size_t place = SequencedFrame(h).sequence() % early_.size();
  while (early_[place].length != 0) {
    if (early_[place].source == h.source && early_[place].sequence == SequencedFrame(h).sequence())
      return true;
    place = (place + 1) % early_.size();
  }
  early_[place] = {h.source, SequencedFrame(h).sequence(),
                   static_cast<std::uint32_t>(frame.size())};
  std::memcpy(&early_bytes_[place * frame_bytes_], frame.data(), frame.size());
  ++kept_;
  empty_turns_ = 0;
  return true;
}

void TrunkDevice::release(FrameSink& sink, std::size_t place) {
  const std::uint32_t length = early_[place].length;
  early_[place].length = 0;
  --kept_;
  sink.on_frame({&early_bytes_[place * frame_bytes_], length});
}

// Passes on the frames that waited for the last number. The entry of a number is near its
// remainder.
void TrunkDevice::hand_on_kept(FrameSink& sink, std::uint32_t source) {
  for (bool found = true; found && kept_ > 0;) {
    found = false;
    const std::size_t start = segment_.peer(source).receive.recv + 1;
    for (std::size_t i = 0; i < early_.size() && !found; ++i) {
      const std::size_t place = (start + i) % early_.size();
      const Early& e = early_[place];
      found = e.length != 0 && e.source == source && ahead_of(source, e.sequence) <= 0;
      if (found) release(sink, place);
    }
  }
}

// Gives up on a gap.
void TrunkDevice::hand_on_oldest(FrameSink& sink) {
  std::size_t oldest = early_.size();
  for (std::size_t place = 0; place < early_.size(); ++place) {
    const Early& e = early_[place];
    if (e.length == 0) continue;
    const bool is_older =
        oldest == early_.size() ||
        (e.source == early_[oldest].source && distance(e.sequence, early_[oldest].sequence) < 0);
    if (is_older) oldest = place;
  }
  if (oldest < early_.size()) release(sink, oldest);
}

}  // namespace score::pm
