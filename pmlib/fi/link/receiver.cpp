#include "pmlib/fi/link/receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::uint16_t kMaxPorts = 4096;
constexpr int kMessagesPerTurn = 64;

}  // namespace

Receiver::Receiver(pm::Endpoint& pm, Requests& requests, Transfers& transfers,
                   DeathListener& listener)
    : pm_(pm),
      requests_(requests),
      transfers_(transfers),
      listener_(listener),
      arriving_(pm.size()) {
  pm_.set_consumer(this);
}

Receiver::~Receiver() {
  pm_.set_consumer(nullptr);
  if (holds_) pm_.release(held_);  // the next owner of the context finds all buffers
}

int Receiver::add_port(Port& port, std::uint16_t& number) {
  const auto free = std::find(ports_.begin(), ports_.end(), nullptr);
  if (free == ports_.end() && ports_.size() >= kMaxPorts) return ENOSPC;
  number = static_cast<std::uint16_t>(free - ports_.begin());
  if (free == ports_.end()) {
    ports_.push_back(&port);
  } else {
    *free = &port;
  }
  return 0;
}

void Receiver::remove_port(std::uint16_t number) {
  ports_[number] = nullptr;
  for (Arriving& arriving : arriving_) {
    if (arriving.port == number) arriving.inflow = nullptr;
  }
}

bool Receiver::find_receive(const TagFilter& filter, Awaited& awaited) const {
  return std::any_of(ports_.begin(), ports_.end(), [&](const Port* port) {
    return port != nullptr && port->find_oldest(filter, awaited);
  });
}

bool Receiver::receive() {
  if (std::exchange(holds_, false)) pm_.release(held_);
  const SegmentHeader& h = pm_.segment().header();
  int taken = 0;
  for (; taken < kMessagesPerTurn; ++taken) {
    ReceivedMessage message;
    const int error = pm_.receive(message);
    if (error == EAGAIN) break;
    if (error == EHOSTDOWN) [[unlikely]] {
      listener_.on_death(message.source);
      continue;
    }
    on_received(message);
    // A further poll of the device would cost a system call, so the loop ends if nothing more is at
    // hand.
    if (h.delivered.head == kNoIndex && !pm_.has_local_input()) {
      give_back_later(message);
      ++taken;
      break;
    }
    pm_.release(message);
  }
  return std::exchange(has_taken_, false) || taken > 0;
}

void Receiver::fail(std::uint32_t peer) {
  Inflow* const inflow = std::exchange(arriving_[peer].inflow, nullptr);
  if (inflow != nullptr) inflow->fail(EHOSTDOWN);
}

// Releasing the buffer now would delay the answer, so the next turn does it while it waits. A
// buffer of a peer is given back at once: there are few, and a rank that computes next would keep
// it.
void Receiver::give_back_later(const ReceivedMessage& message) {
  if (message.by_shmem) return pm_.release(message);
  held_ = message;
  holds_ = true;
}

void Receiver::on_received(const ReceivedMessage& message) {
  std::span<const std::byte> bytes = message.bytes;
  const auto header = fi::take<Header>(bytes);
  if (message.kind != FrameKind::Message || !header) return;
  const IncomingMessage in{*header, {message.source, header->from_port}, bytes};
  is_handling_ = true;
  if (!take_fast(in)) on_message(in);
  is_handling_ = false;
}

bool Receiver::take_fast(const IncomingMessage& in) {
  const Header& h = in.header;
  const bool may_be_fast = (h.kind == MessageKind::Tagged || h.kind == MessageKind::Send) &&
                           (h.flags & ~kSmallData) == 0 && h.to_port < ports_.size() &&
                           arriving_[in.from.peer].inflow == nullptr;
  return may_be_fast && ports_[h.to_port] != nullptr && ports_[h.to_port]->take_fast(in);
}

void Receiver::on_message(const IncomingMessage& in) {
  Arriving& arriving = arriving_[in.from.peer];
  const std::uint16_t number = in.header.to_port;
  Port* const port = number < ports_.size() ? ports_[number] : nullptr;
  switch (in.header.kind) {
    case MessageKind::Send:
    case MessageKind::Tagged: {
      arriving.inflow = nullptr;
      std::size_t left = 0;
      Inflow* const inflow = port != nullptr ? port->on_message(in, left) : nullptr;
      if (left == 0) return;
      arriving.inflow = inflow;
      arriving.port = number;
      arriving.left = left;
      return;
    }
    case MessageKind::Fragment:
      return on_fragment(arriving, in.bytes);
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
      return transfers_.on_go_ahead(in);
    case MessageKind::Finished:
      return transfers_.on_finished(in);
  }
}

// Takes a part of a message, but not its last one, as it arrives. The bytes go directly to their
// place without an intermediate buffer; this neither answers nor reports anything yet.
bool Receiver::take(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto header = fi::take<Header>(bytes);
  if (is_handling_ || !header) return false;
  Arriving& arriving = arriving_[source];
  if (header->kind == MessageKind::Fragment) {
    if (arriving.inflow == nullptr || bytes.size() >= arriving.left) return false;
    on_fragment(arriving, bytes);
  } else {
    const bool is_message =
        header->kind == MessageKind::Tagged || header->kind == MessageKind::Send;
    const bool is_first = (header->flags & (kSplit | kLarge)) == kSplit;
    if (!is_message || !is_first) return false;
    on_message({*header, {source, header->from_port}, bytes});
  }
  return has_taken_ = true;
}

Receiver::Place Receiver::place(std::uint32_t source, std::span<const std::byte> bytes) {
  const auto header = fi::take<Header>(bytes);
  const Arriving& arriving = arriving_[source];
  if (is_handling_ || !header || header->kind != MessageKind::Fragment ||
      arriving.inflow == nullptr || bytes.empty() || bytes.size() >= arriving.left) {
    return {};
  }
  return {arriving.inflow->place(bytes.size()), sizeof(Header)};
}

void Receiver::placed(std::uint32_t source, std::size_t count) {
  Arriving& arriving = arriving_[source];
  arriving.left -= count;
  arriving.inflow->placed(count);
  has_taken_ = true;
}

void Receiver::on_fragment(Arriving& arriving, std::span<const std::byte> bytes) {
  if (arriving.inflow == nullptr || bytes.empty()) return;
  const std::size_t n = std::min(bytes.size(), arriving.left);
  arriving.left -= n;
  Inflow* const inflow = arriving.inflow;
  if (arriving.left == 0) arriving.inflow = nullptr;
  inflow->add(bytes.first(n), arriving.left);
}

// An answer is accepted only from the peer that was asked.
void Receiver::on_answer(const IncomingMessage& in) {
  LinkRequest* const request = requests_.find_asked(in.header.tag, in.from.peer);
  // The answer must not overtake the acknowledgement of all parts.
  if (request == nullptr || (request->operation != 0 && pm_.is_running(request->operation))) return;
  const int error = in.header.status;
  if (request->inbound != 0) return transfers_.end_inbound(request->inbound, error);
  if (in.header.kind == MessageKind::Reply && error == 0) request->take_reply(in.bytes);
  requests_.end(request->id, error);
}

}  // namespace score::pm::fi
