#include "scored/control/control_network.hpp"

#include "base/os/fd.hpp"

#include <algorithm>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace score::control {

namespace {

constexpr int kMostPerTurn = 256;  // datagrams; then the loop does its other work

}  // namespace

ControlNetwork::ControlNetwork(asio::any_io_executor io, Clock& clock, Handler handler)
    : clock_(clock), handler_(std::move(handler)), socket_(io) {}

Status ControlNetwork::open(in_addr local, TaskGroup& tasks) {
  auto socket = open_socket(local);
  if (!socket) return socket.error();
  address_ = address_of(socket->get());
  socket_.assign(socket->release());
  tasks.spawn("control network", receive_all());
  return {};
}

Status ControlNetwork::join(Roster roster, std::uint32_t rank, LinkKeys keys) {
  leave();
  auto socket = duplicate(socket_.native_handle());
  if (!socket) return socket.error();
  auto endpoint = open_context(roster, rank, Use::Main, *std::move(socket));
  if (!endpoint) return endpoint.error();
  endpoint_ = *std::move(endpoint);
  roster_ = std::move(roster);
  keys_ = std::move(keys);
  return {};
}

void ControlNetwork::leave() {
  add_counters(counters_);
  endpoint_.reset();
  roster_ = {};
  keys_ = {};
}

// ---- Sending ------------------------------------------------------------------------------------

bool ControlNetwork::send_encoded(std::span<const std::uint32_t> ranks, proto::FrameType type,
                                  std::size_t bytes) {
  if (!endpoint_) return false;
  const MessageHeader header{static_cast<std::uint16_t>(type), kMessageVersion};
  std::memcpy(out_.data(), &header, sizeof header);
  const auto bare = std::span(out_).first(sizeof header + bytes);
  const auto tagged = std::span(out_).first(bare.size() + kTagBytes);
  bool all = true;
  for (const std::uint32_t to : ranks) {
    if (!roster_.has(to) || to == endpoint_->rank()) continue;
    const bool has_tag = keys_.has(to);
    if (has_tag) write_tag(keys_.tag_to(to, bare), tagged.last(kTagBytes));
    if (endpoint_->send_datagram({&to, 1}, has_tag ? tagged : bare) == 0) continue;
    ++counters_.unsent;
    all = false;
  }
  return all;
}

// ---- Receiving ----------------------------------------------------------------------------------

asio::awaitable<void> ControlNetwork::receive_all() {
  for (;;) {
    auto [failed] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_read, kNoThrow);
    if (failed) co_return;
    if (endpoint_) {
      take_some();
    } else {
      discard_some();
    }
    report_drops();
  }
}

// The handler may replace the endpoint, or leave the network.
void ControlNetwork::take_some() {
  for (int i = 0; i < kMostPerTurn && endpoint_; ++i) {
    if (!take_one()) return;
  }
}

// Returns false if no more datagrams have arrived.
bool ControlNetwork::take_one() {
  pm::ReceivedMessage received;
  if (endpoint_->receive(received) != 0) return false;
  const std::size_t bytes = received.bytes.size();
  const bool fits = received.kind == pm::FrameKind::Datagram && bytes <= in_.size();
  if (fits) std::ranges::copy(received.bytes, in_.begin());
  endpoint_->release(received);
  if (fits) {
    hand_on(received.source, std::span(in_).first(bytes));
  } else {
    ++counters_.malformed;
  }
  return true;
}

// A member without a key of this sender is an older one, or neither above nor below it; then the
// message is without effect.
bool ControlNetwork::is_of(std::uint32_t source, std::span<const std::byte> datagram) const {
  if (!keys_.has(source)) return true;
  const auto tag = read_tag(datagram);
  return tag && *tag == keys_.tag_from(source, datagram.first(datagram.size() - kTagBytes));
}

void ControlNetwork::hand_on(std::uint32_t source, std::span<const std::byte> datagram) {
  Message message;
  if (!is_of(source, datagram)) {
    ++counters_.untagged;
    return;
  }
  switch (read_message(datagram, source, message)) {
    case MessageFault::None:
      ++counters_.received;
      return handler_(source, message);
    case MessageFault::Malformed:
      ++counters_.malformed;
      return;
    case MessageFault::Unknown:
      ++counters_.unknown;
      return;
    case MessageFault::NotAllowed:
      ++counters_.not_allowed;
      return;
  }
}

// Without a roster no datagram is meant for this daemon.
void ControlNetwork::discard_some() {
  std::byte none{};
  for (int i = 0; i < kMostPerTurn; ++i) {
    if (recv(socket_.native_handle(), &none, 1, MSG_DONTWAIT | MSG_TRUNC) < 0) return;
    ++counters_.foreign;
  }
}

// ---- Counters -----------------------------------------------------------------------------------

ControlCounters ControlNetwork::counters() const {
  ControlCounters sum = counters_;
  add_counters(sum);
  return sum;
}

// Messages of the go-back-N are counted as malformed here, because no daemon sends one.
void ControlNetwork::add_counters(ControlCounters& sum) const {
  if (!endpoint_) return;
  const pm::Counters& c = endpoint_->segment().header().counters;
  sum.sent += c.datagrams_sent;
  sum.malformed += c.dropped_malformed + c.dropped_corrupt + c.dropped_strange;
  sum.foreign += c.dropped_foreign;
  sum.forged += c.dropped_forged;
  sum.stale += c.dropped_stale;
  sum.no_buffer += c.datagrams_dropped;
}

void ControlNetwork::report_drops() {
  const ControlCounters sum = counters();
  if (sum.suspicious() == reported_ || !limiter_.allow(clock_.now())) return;
  log_warning("Dropped datagrams of the control network", kv("count", sum.suspicious() - reported_),
              kv("malformed", sum.malformed), kv("foreign", sum.foreign), kv("forged", sum.forged),
              kv("unknown", sum.unknown), kv("not_allowed", sum.not_allowed),
              kv("untagged", sum.untagged));
  reported_ = sum.suspicious();
}

}  // namespace score::control
