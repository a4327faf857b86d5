// Sends at once if PM has a buffer, otherwise in the order of submission when it has one again.
// This file also dispatches everything that arrives.
#include "pmlib/fi/link/link.hpp"
#include "pmlib/wire/crc32c.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sched.h>

namespace score::pm::fi {

namespace {

constexpr int kMessagesPerTurn = 64;
constexpr unsigned kYieldEvery = 16;
// Chosen: a poll takes 50 to 300 ns, so a read takes at most 5 us, and only after a message.
constexpr unsigned kPollsAtOnce = 16;
constexpr unsigned kPollsAfterMessage = 64;
// Used where frames arrive in this process's own memory, so that a poll takes 25 ns. The MPI's own
// turn between two reads takes as long as several polls, and delays an answer that comes meanwhile.
constexpr unsigned kQuickPolls = 128;
constexpr std::uint64_t kAwayNs = 3'000;  // longer than the MPI's own part of a turn

// Calls `copy` with the positions of `length` bytes of the pieces, beginning at `offset`.
template <class Copy>
void for_pieces(std::span<const iovec> pieces, std::size_t offset, std::size_t length, Copy copy) {
  for (const iovec& piece : pieces) {
    if (length == 0) return;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::size_t n = std::min(piece.iov_len - offset, length);
    copy(static_cast<const std::byte*>(piece.iov_base) + offset, n);
    length -= n;
    offset = 0;
  }
}

void gather(std::span<const iovec> pieces, std::size_t offset, std::span<std::byte> to) {
  for_pieces(pieces, offset, to.size(), [&](const std::byte* from, std::size_t n) {
    std::memcpy(to.data(), from, n);
    to = to.subspan(n);
  });
}

// Gathers the bytes and returns the checksum `sum` extended by them.
std::uint32_t gather_summed(std::span<const iovec> pieces, std::size_t offset,
                            std::span<std::byte> to, std::uint32_t sum) {
  for_pieces(pieces, offset, to.size(), [&](const std::byte* from, std::size_t n) {
    sum = crc32c_copy(sum, to.data(), from, n);
    to = to.subspan(n);
  });
  return sum;
}

}  // namespace

std::size_t Link::eager_bytes(std::uint32_t peer) const {
  const std::size_t one = message_bytes(peer);
  const Segment& segment = pm_->segment();
  if (segment.peer(peer).route != Route::Packet) return one;
  // A message must not wait for acknowledgements of its own frames.
  const std::size_t kept = segment.geometry().send_buffers * 3 / 4 * (one - sizeof(Header));
  const bool is_joined = segment.header().device.kind == DeviceKind::Udp;
  const std::size_t most = is_joined ? kept : std::min(kept, kEagerFrames * one);
  return std::max(std::min(kEagerBytes, most), one);
}

bool Link::may_go_unasked(std::uint32_t peer, std::size_t length) const {
  const Segment& segment = pm_->segment();
  return length <= kUnaskedBytes && peers_[peer].unasked + length <= kMostUnasked &&
         segment.peer(peer).route == Route::Packet &&
         segment.header().device.kind == DeviceKind::Udp;
}

std::size_t Link::smallest_message() const {
  const Geometry& g = pm_->segment().geometry();
  return std::min(g.payload_bytes, g.pool_buffer_bytes);
}

// --- sending -----------------------------------------------------------------------------------

bool Link::try_send(std::uint32_t to, std::span<const std::byte> head,
                    std::span<const iovec> pieces, std::size_t length) {
  std::byte* const buffer = lend(to, head.size() + length);
  if (buffer == nullptr) return false;
  std::memcpy(buffer, head.data(), head.size());
  if (pieces.size() == 1) {
    if (length > 0) std::memcpy(buffer + head.size(), pieces[0].iov_base, length);
  } else {
    gather(pieces, 0, {buffer + head.size(), length});
  }
  return send_lent();
}

std::uint32_t Link::enter(LinkRequest& request) {
  request.id = requests_.add(&request);
  return request.id;
}

bool Link::send_at_once(LinkRequest& request) {
  note_sending();
  const Peer& peer = peers_[request.to.peer];
  return !peer.is_waiting && !peer.is_dead && is_ready(request.to.peer) && push(request) == 0;
}

void Link::submit(std::unique_ptr<LinkRequest> request) {
  note_sending();
  LinkRequest* const raw = request.release();
  ++live_requests_;
  copied_bytes_ += raw->copied;
  Peer& peer = peers_[raw->to.peer];
  peer.unasked += raw->unasked;
  if (peer.is_dead) return end(raw, EHOSTDOWN);
  raw->is_queued = true;
  peer.queue.push_back(raw);
  if (peer.is_waiting) return;
  peer.is_waiting = true;
  waiting_peers_.push_back(raw->to.peer);
  flush(raw->to.peer);
}

void Link::end(LinkRequest* request, int error) {
  const std::unique_ptr<LinkRequest> owned(request);
  if (request->id != 0) requests_.take(request->id);
  --live_requests_;
  copied_bytes_ -= request->copied;
  peers_[request->to.peer].unasked -= request->unasked;
  if (request->operation != 0) pm_->test(request->operation);
  if (request->has_region) drop_region(request->region);
  request->finish(error);
}

// Passes as much as possible of a request to PM. If it does not fit one message, the rest goes in
// Fragments, which leave together.
int Link::push(LinkRequest& request) {
  const std::uint32_t to = request.to.peer;
  const std::size_t most = message_bytes(to);
  const bool is_near = pm_->segment().peer(to).route != Route::Packet;  // needs no checksum
  while (request.head_bytes > 0 || request.sent < request.length) {
    Header fragment;
    fragment.kind = MessageKind::Fragment;
    const bool is_first = request.head_bytes > 0;
    if (request.unasked > 0 && !is_first) {
      const int error = push_parts(request);
      if (error == ENOBUFS) pm_->send_held(to);
      if (error != ENOSPC) return error;
    }
    const std::span<const std::byte> head =
        is_first ? std::span<const std::byte>(request.head).first(request.head_bytes)
                 : std::as_bytes(std::span(&fragment, 1));
    const std::size_t n = std::min(most - head.size(), request.length - request.sent);
    std::byte* buffer = nullptr;
    int error = pm_->get_send_buffer(to, static_cast<std::uint32_t>(head.size() + n), &buffer);
    if (error != 0) {
      pm_->send_held(to);
      return error;
    }
    const std::span<std::byte> body(buffer + head.size(), n);
    const bool more_follows = request.sent + n < request.length;
    if (is_near) {
      std::memcpy(buffer, head.data(), head.size());
      gather(request.pieces, request.sent, body);
      error = pm_->send(more_follows);
    } else {
      const std::uint32_t sum = crc32c_copy(0, buffer, head.data(), head.size());
      error =
          pm_->send_summed(gather_summed(request.pieces, request.sent, body, sum), more_follows);
    }
    if (error != 0) {
      pm_->cancel_send();
      return error;
    }
    request.head_bytes = 0;
    request.sent += n;
  }
  return 0;
}

// Passes the rest of a request to PM, which sends it out of its own memory. Returns ENOSPC if no
// region is free.
int Link::push_parts(LinkRequest& request) {
  const auto* at = static_cast<const std::byte*>(request.pieces[0].iov_base) + request.sent;
  const std::size_t left = request.length - request.sent;
  std::uint64_t offset = 0;
  if (pm_->add_region(at, left, request.region, offset) != 0) return ENOSPC;
  Header fragment;
  fragment.kind = MessageKind::Fragment;
  PartHead head;
  static_assert(sizeof head == sizeof fragment);
  std::memcpy(head.words.data(), &fragment, sizeof head);
  const int error = pm_->send_parts(request.to.peer, request.region, offset,
                                    static_cast<std::uint32_t>(left), head, request.operation);
  request.has_region = error == 0;
  if (error != 0) {
    pm_->drop_region(request.region);
    return error;
  }
  request.sent = request.length;
  return 0;
}

void Link::flush(std::uint32_t to) {
  Peer& peer = peers_[to];
  if (!is_ready(to)) return;
  while (!peer.queue.empty()) {
    LinkRequest* const request = peer.queue.front();
    const int error = push(*request);
    if (error == ENOBUFS || error == EBUSY) return;
    if (error == EHOSTDOWN) return peer_died(to);
    peer.queue.pop_front();
    request->is_queued = false;
    if (error != 0 || request->id == 0) end(request, error);
  }
  peer.is_waiting = false;
  std::erase(waiting_peers_, to);
}

void Link::send_head(std::uint32_t to, const MessageHead& head) {
  if (try_send(to, head.span(), {}, 0)) return;

  struct Note final : LinkRequest {
    void finish(int) override {}
  };

  auto note = std::make_unique<Note>();
  note->to.peer = to;
  note->set_head(head);
  submit(std::move(note));
}

void Link::send_done(PortName to, std::uint32_t request, int error) {
  Header header;
  header.kind = MessageKind::Done;
  header.to_port = to.port;
  header.status = static_cast<std::uint16_t>(error);
  header.tag = request;
  send_head(to.peer, MessageHead(header));
}

void Link::peer_died(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.is_dead) return;
  peer.is_dead = true;
  if (Inflow* const inflow = std::exchange(peer.inflow, nullptr); inflow != nullptr) {
    inflow->fail(EHOSTDOWN);
  }
  peer.is_waiting = false;
  std::erase(waiting_peers_, rank);
  const std::list<LinkRequest*> queue = std::exchange(peer.queue, {});
  for (LinkRequest* request : queue) {
    request->is_queued = false;
    end(request, EHOSTDOWN);
  }
  for (const std::uint32_t id : requests_.ids()) {
    LinkRequest** const request = requests_.find(id);
    if (request != nullptr && (*request)->to.peer == rank) end(*request, EHOSTDOWN);
  }
  end_transfers_of(rank);
}

// --- progress ----------------------------------------------------------------------------------

bool Link::progress() {
  if (is_armed_) [[unlikely]]
    disarm();
  if (std::exchange(holds_, false)) pm_->release(held_);
  const SegmentHeader& h = pm_->segment().header();
  int taken = 0;
  for (; taken < kMessagesPerTurn; ++taken) {
    ReceivedMessage message;
    const int error = pm_->receive(message);
    if (error == EAGAIN) break;
    if (error == EHOSTDOWN) [[unlikely]] {
      peer_died(message.source);
      continue;
    }
    on_received(message);
    // A further poll of the device would cost a system call, so the loop ends if nothing more is at
    // hand.
    if (h.delivered.head == kNoIndex && !pm_->has_local_input()) {
      give_back_later(message);
      ++taken;
      break;
    }
    pm_->release(message);
  }
  bool something = std::exchange(has_taken_, false) || taken > 0;
  if (has_late_work()) [[unlikely]]
    something |= do_late_work();
  pm_->send_due_acks();  // sends the acknowledgements that no answer has carried
  if (something) {
    expect_more();
  } else if (++empty_turns_ > kPatientTurns) {
    yield_at_times();
  }
  return something;
}

// Yields the processor at times, because there may be more ranks than processors.
void Link::yield_at_times() {
  if (empty_turns_ % kYieldEvery == 0) sched_yield();
}

// Sends what could not be sent at once, continues large transfers, and introduces unknown peers.
bool Link::do_late_work() {
  bool something = false;
  if (!waiting_peers_.empty()) {
    const std::vector<std::uint32_t> waiting = waiting_peers_;
    for (const std::uint32_t to : waiting) flush(to);
    something |= waiting.size() != waiting_peers_.size();
  }
  if (has_transfers()) {
    pm_->progress();  // completes writes; receive() alone does not
    something |= pump_all();
  }
  if (directory_ != nullptr && directory_->has_unready()) directory_->tick(now_us());
  return something;
}

void Link::choose_polls() {
  const bool is_quick = pm_->segment().header().device.kind == DeviceKind::Ethernet;
  polls_at_once_ = is_quick ? kQuickPolls : kPollsAtOnce;
  polls_after_message_ = is_quick ? kQuickPolls : kPollsAfterMessage;
}

void Link::expect_more() {
  end_silence();
  polls_left_ = polls_after_message_;
  gave_up_ns_ = 0;
}

unsigned Link::polls_before_giving_up() {
  if (polls_left_ == 0) return 0;
  if (gave_up_ns_ != 0 && now_ns() - gave_up_ns_ > kAwayNs) polls_left_ = 0;
  const unsigned polls = std::min(polls_left_, polls_at_once_);
  polls_left_ -= polls;
  return polls;
}

void Link::gave_up() {
  if (polls_left_ > 0) gave_up_ns_ = now_ns();
}

void Link::on_message(const IncomingMessage& in) {
  Peer& peer = peers_[in.from.peer];
  const std::uint16_t number = in.header.to_port;
  Port* const port = number < ports_.size() ? ports_[number] : nullptr;
  switch (in.header.kind) {
    case MessageKind::Send:
    case MessageKind::Tagged: {
      peer.inflow = nullptr;
      std::size_t left = 0;
      Inflow* const inflow = port != nullptr ? port->on_message(in, left) : nullptr;
      if (left == 0) return;
      peer.inflow = inflow;
      peer.inflow_port = number;
      peer.inflow_left = left;
      return;
    }
    case MessageKind::Fragment:
      return on_fragment(peer, in.bytes);
    case MessageKind::Write:
    case MessageKind::WriteLarge:
    case MessageKind::Read:
    case MessageKind::Atomic:
      if (port != nullptr) port->on_access(in);
      return;
    case MessageKind::Reply:
    case MessageKind::Done:
      return on_answer(in);
    case MessageKind::GoAhead:
      return on_go_ahead(in);
    case MessageKind::Finished:
      return on_finished(in);
  }
}

// Takes a part of a message, but not its last one, as it arrives. The bytes go directly to their
// place without an intermediate buffer; this neither answers nor reports anything yet.
bool Link::take(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto header = fi::take<Header>(bytes);
  if (is_handling_ || !header) return false;
  Peer& peer = peers_[source];
  if (header->kind == MessageKind::Fragment) {
    if (peer.inflow == nullptr || bytes.size() >= peer.inflow_left) return false;
    on_fragment(peer, bytes);
  } else {
    const bool is_message =
        header->kind == MessageKind::Tagged || header->kind == MessageKind::Send;
    const bool is_first = (header->flags & (kSplit | kLarge)) == kSplit;
    if (!is_message || !is_first) return false;
    on_message({*header, {source, header->from_port}, bytes});
  }
  return has_taken_ = true;
}

Link::Place Link::place(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto header = fi::take<Header>(bytes);
  const Peer& peer = peers_[source];
  if (is_handling_ || !header || header->kind != MessageKind::Fragment || peer.inflow == nullptr ||
      bytes.empty() || bytes.size() >= peer.inflow_left) {
    return {};
  }
  return {peer.inflow->place(bytes.size()), sizeof(Header)};
}

void Link::placed(std::uint32_t source, std::size_t count) {
  Peer& peer = peers_[source];
  peer.inflow_left -= count;
  peer.inflow->placed(count);
  has_taken_ = true;
}

void Link::on_fragment(Peer& peer, std::span<const std::byte> bytes) {
  if (peer.inflow == nullptr || bytes.empty()) return;
  const std::size_t n = std::min(bytes.size(), peer.inflow_left);
  peer.inflow_left -= n;
  Inflow* const inflow = peer.inflow;
  if (peer.inflow_left == 0) peer.inflow = nullptr;
  inflow->add(bytes.first(n), peer.inflow_left);
}

// An answer is accepted only from the peer that was asked.
void Link::on_answer(const IncomingMessage& in) {
  if (in.header.tag > UINT32_MAX) return;
  LinkRequest** const found = requests_.find(static_cast<std::uint32_t>(in.header.tag));
  if (found == nullptr) return;
  LinkRequest* const request = *found;
  if (request->to.peer != in.from.peer || request->is_queued || request->is_moving) return;
  // The answer must not overtake the acknowledgement of all parts.
  if (request->operation != 0 && pm_->is_running(request->operation)) return;
  if (request->inbound != 0) return end_inbound(request->inbound, in.header.status);
  if (in.header.kind == MessageKind::Reply && in.header.status == 0) request->take_reply(in.bytes);
  end(request, in.header.status);
}

}  // namespace score::pm::fi
