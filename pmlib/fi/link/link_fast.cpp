// Implements the link's part of the fast path of short messages. It lends PM's own buffer to a
// sender and gives a message to the endpoint that takes it at once. It skips the request, the queue
// of its peer and the reassembly of a message that came in pieces; see endpoint/ep_fast.cpp for the
// endpoint's part and the condition.
#include "pmlib/fi/link/link.hpp"

namespace score::pm::fi {

std::byte* Link::lend(std::uint32_t to, std::size_t bytes) {
  const Peer& peer = peers_[to];
  if (peer.is_waiting || peer.is_dead || !is_ready(to)) return nullptr;
  std::byte* buffer = nullptr;
  const bool has_one = pm_->get_send_buffer(to, static_cast<std::uint32_t>(bytes), &buffer) == 0;
  return has_one ? buffer : nullptr;
}

bool Link::send_lent() {
  if (pm_->send() == 0) [[likely]] {
    note_sending();
    return true;
  }
  pm_->cancel_send();
  return false;
}

// Releasing the buffer now would delay the answer, so the next turn does it while it waits. A
// buffer of a peer is given back at once: there are few, and a rank that computes next would keep
// it.
void Link::give_back_later(const ReceivedMessage& message) {
  if (message.by_shmem) return pm_->release(message);
  held_ = message;
  holds_ = true;
}

void Link::on_received(const ReceivedMessage& message) {
  std::span<const std::byte> bytes = message.bytes;
  const auto header = fi::take<Header>(bytes);
  if (message.kind != FrameKind::Message || !header) return;
  const IncomingMessage in{*header, {message.source, header->from_port}, bytes};
  is_handling_ = true;
  if (!take_fast(in)) on_message(in);
  is_handling_ = false;
}

bool Link::take_fast(const IncomingMessage& in) {
  const Header& h = in.header;
  const bool may_be_fast = (h.kind == MessageKind::Tagged || h.kind == MessageKind::Send) &&
                           (h.flags & ~kSmallData) == 0 && h.to_port < ports_.size() &&
                           peers_[in.from.peer].inflow == nullptr;
  return may_be_fast && ports_[h.to_port] != nullptr && ports_[h.to_port]->take_fast(in);
}

}  // namespace score::pm::fi
