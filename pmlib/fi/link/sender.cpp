#include "pmlib/fi/link/sender.hpp"

#include "pmlib/wire/crc32c.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace score::pm::fi {

namespace {

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

Sender::Sender(const SenderParts& parts) : parts_(parts), queues_(parts.pm.size()) {}

Sender::~Sender() {
  for (Queue& queue : queues_) {
    for (LinkRequest* request : queue.requests) {
      if (request->id == 0) delete request;
    }
  }
}

std::size_t Sender::eager_bytes(std::uint32_t peer) const {
  const std::size_t one = parts_.peers.message_bytes(peer);
  const Segment& segment = parts_.pm.segment();
  if (segment.peer(peer).route != Route::Packet) return one;
  // A message must not wait for acknowledgements of its own frames.
  const std::size_t kept = segment.geometry().send_buffers * 3 / 4 * (one - sizeof(Header));
  const bool is_joined = segment.header().device.kind == DeviceKind::Udp;
  const std::size_t most = is_joined ? kept : std::min(kept, kEagerFrames * one);
  return std::max(std::min(kEagerBytes, most), one);
}

bool Sender::may_go_unasked(std::uint32_t peer, std::size_t length) const {
  const Segment& segment = parts_.pm.segment();
  return length <= kUnaskedBytes && parts_.requests.unasked_bytes(peer) + length <= kMostUnasked &&
         segment.peer(peer).route == Route::Packet &&
         segment.header().device.kind == DeviceKind::Udp;
}

// --- at once: the link's part of the fast path of endpoint/ep_fast.cpp -------------------------

std::byte* Sender::lend(std::uint32_t to, std::size_t bytes) {
  if (!is_open(to)) return nullptr;
  std::byte* buffer = nullptr;
  const bool has_one =
      parts_.pm.get_send_buffer(to, static_cast<std::uint32_t>(bytes), &buffer) == 0;
  return has_one ? buffer : nullptr;
}

bool Sender::send_lent() {
  if (parts_.pm.send() == 0) [[likely]] {
    note_sending();
    return true;
  }
  parts_.pm.cancel_send();
  return false;
}

bool Sender::try_send(std::uint32_t to, std::span<const std::byte> head,
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

bool Sender::send_at_once(LinkRequest& request) {
  note_sending();
  return is_open(request.to.peer) && push(request) == 0;
}

void Sender::send_head(std::uint32_t to, const MessageHead& head) {
  if (try_send(to, head.span(), {}, 0)) return;

  struct Note final : LinkRequest {
    void finish(int) override {}
  };

  auto note = std::make_unique<Note>();
  note->to.peer = to;
  note->set_head(head);
  submit(std::move(note));
}

void Sender::send_done(PortName to, std::uint32_t request, int error) {
  Header header;
  header.kind = MessageKind::Done;
  header.to_port = to.port;
  header.status = static_cast<std::uint16_t>(error);
  header.tag = request;
  send_head(to.peer, MessageHead(header));
}

// --- queues ------------------------------------------------------------------------------------

void Sender::submit(std::unique_ptr<LinkRequest> request) {
  note_sending();
  LinkRequest* const raw = parts_.requests.add(std::move(request));
  Queue& queue = queues_[raw->to.peer];
  if (queue.is_dead) return parts_.requests.end(raw, EHOSTDOWN);
  raw->is_queued = true;
  queue.requests.push_back(raw);
  if (queue.is_waiting) return;
  queue.is_waiting = true;
  waiting_peers_.push_back(raw->to.peer);
  flush(raw->to.peer);
}

bool Sender::fail(std::uint32_t peer) {
  Queue& queue = queues_[peer];
  if (std::exchange(queue.is_dead, true)) return false;
  queue.is_waiting = false;
  std::erase(waiting_peers_, peer);
  for (LinkRequest* request : std::exchange(queue.requests, {})) {
    request->is_queued = false;
    parts_.requests.end(request, EHOSTDOWN);
  }
  parts_.requests.fail(peer);
  return true;
}

bool Sender::cancel(const void* endpoint, const void* context) {
  for (const std::uint32_t peer : waiting_peers_) {
    Queue& queue = queues_[peer];
    const auto found = std::ranges::find_if(queue.requests, [&](const LinkRequest* request) {
      return request->head_bytes > 0 && request->is_cancellable(endpoint, context);
    });
    if (found == queue.requests.end()) continue;
    LinkRequest* const request = *found;
    queue.requests.erase(found);
    request->is_queued = false;
    parts_.requests.end(request, ECANCELED);
    flush(peer);
    return true;
  }
  return false;
}

bool Sender::send_queued() {
  const std::vector<std::uint32_t> waiting = waiting_peers_;
  for (const std::uint32_t to : waiting) flush(to);
  return waiting.size() != waiting_peers_.size();
}

void Sender::flush(std::uint32_t to) {
  Queue& queue = queues_[to];
  if (!parts_.peers.is_ready(to)) return;
  while (!queue.requests.empty()) {
    LinkRequest* const request = queue.requests.front();
    const int error = push(*request);
    if (error == ENOBUFS || error == EBUSY) return;
    if (error == EHOSTDOWN) return parts_.listener.on_death(to);
    queue.requests.pop_front();
    request->is_queued = false;
    if (error != 0 || request->id == 0) parts_.requests.end(request, error);
  }
  queue.is_waiting = false;
  std::erase(waiting_peers_, to);
}

// Passes as much as possible of a request to PM. If it does not fit one message, the rest goes in
// Fragments, which leave together.
int Sender::push(LinkRequest& request) {
  const std::uint32_t to = request.to.peer;
  const std::size_t most = parts_.peers.message_bytes(to);
  const bool is_near = parts_.pm.segment().peer(to).route != Route::Packet;  // needs no checksum
  while (request.head_bytes > 0 || request.sent < request.length) {
    Header fragment;
    fragment.kind = MessageKind::Fragment;
    const bool is_first = request.head_bytes > 0;
    if (request.unasked > 0 && !is_first) {
      const int error = push_parts(request);
      if (error == ENOBUFS) parts_.pm.send_held(to);
      if (error != ENOSPC) return error;
    }
    const std::span<const std::byte> head =
        is_first ? std::span<const std::byte>(request.head).first(request.head_bytes)
                 : std::as_bytes(std::span(&fragment, 1));
    const std::size_t n = std::min(most - head.size(), request.length - request.sent);
    std::byte* buffer = nullptr;
    int error = parts_.pm.get_send_buffer(to, static_cast<std::uint32_t>(head.size() + n), &buffer);
    if (error != 0) {
      parts_.pm.send_held(to);
      return error;
    }
    const std::span<std::byte> body(buffer + head.size(), n);
    const bool more_follows = request.sent + n < request.length;
    if (is_near) {
      std::memcpy(buffer, head.data(), head.size());
      gather(request.pieces, request.sent, body);
      error = parts_.pm.send(more_follows);
    } else {
      const std::uint32_t sum = crc32c_copy(0, buffer, head.data(), head.size());
      error = parts_.pm.send_summed(gather_summed(request.pieces, request.sent, body, sum),
                                    more_follows);
    }
    if (error != 0) {
      parts_.pm.cancel_send();
      return error;
    }
    request.head_bytes = 0;
    request.sent += n;
  }
  return 0;
}

// Passes the rest of a request to PM, which sends it out of its own memory. Returns ENOSPC if no
// region is free.
int Sender::push_parts(LinkRequest& request) {
  const auto* at = static_cast<const std::byte*>(request.pieces[0].iov_base) + request.sent;
  const std::size_t left = request.length - request.sent;
  std::uint64_t offset = 0;
  if (parts_.pm.add_region(at, left, request.region, offset) != 0) return ENOSPC;
  Header fragment;
  fragment.kind = MessageKind::Fragment;
  PartHead head;
  static_assert(sizeof head == sizeof fragment);
  std::memcpy(head.words.data(), &fragment, sizeof head);
  const int error = parts_.pm.send_parts(request.to.peer, request.region, offset,
                                         static_cast<std::uint32_t>(left), head, request.operation);
  request.has_region = error == 0;
  if (error != 0) {
    parts_.pm.drop_region(request.region);
    return error;
  }
  request.sent = request.length;
  return 0;
}

}  // namespace score::pm::fi
