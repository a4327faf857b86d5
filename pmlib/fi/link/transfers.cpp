#include "pmlib/fi/link/transfers.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pm::fi {

namespace {

constexpr std::size_t kMostInbounds = 40;
constexpr std::size_t kMostOutbounds = 40;
constexpr std::uint64_t kChunkBytes = 256ull << 20;  // PM takes less than 4 GB at once

}  // namespace

// --- coming in ---------------------------------------------------------------------------------

void Transfers::fetch(PortName from, std::uint32_t request, std::span<std::byte> memory,
                      std::unique_ptr<TransferArrival> arrival) {
  if (sender_.is_dead(from.peer)) return arrival->finish(EHOSTDOWN);
  auto inbound = std::make_unique<Inbound>();
  inbound->from = from;
  inbound->request = request;
  inbound->memory = memory;
  inbound->arrival = std::move(arrival);
  waiting_inbounds_.push_back(inbounds_.add(std::move(inbound)));
  start_inbounds();
}

void Transfers::read_into(std::unique_ptr<LinkRequest> request, const Header& header,
                          const RmaExtra& extra, std::span<std::byte> memory) {
  if (sender_.is_dead(request->to.peer))
    return sender_.submit(std::move(request));  // ends the request
  auto inbound = std::make_unique<Inbound>();
  inbound->from = request->to;
  inbound->memory = memory;
  inbound->header = header;
  inbound->extra = extra;
  inbound->request = inbound->extra.request = requests_.enter(*request);
  request->inbound = inbounds_.add(std::move(inbound));
  waiting_inbounds_.push_back(request->inbound);
  requests_.add(std::move(request));
  start_inbounds();
}

void Transfers::start_inbounds() {
  while (!waiting_inbounds_.empty() && started_inbounds_ < kMostInbounds) {
    const std::uint32_t id = waiting_inbounds_.front();
    std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
    if (inbound != nullptr && !start_inbound(**inbound, id)) return;
    waiting_inbounds_.pop_front();
  }
}

// Registers the memory and notifies the peer. Returns false if no region is free.
bool Transfers::start_inbound(Inbound& inbound, std::uint32_t id) {
  fi::RegionPlace place;
  if (pm_.add_region(inbound.memory.data(), inbound.memory.size(), place.region, place.offset) !=
      0) {
    return false;
  }
  place.nonce = pm_.segment().region(place.region).nonce;
  inbound.region = place.region;
  inbound.is_started = true;
  ++started_inbounds_;
  if (inbound.arrival == nullptr) {
    inbound.extra.inbound = id;
    inbound.extra.place = place;
    sender_.send_head(inbound.from.peer, MessageHead(inbound.header).add(inbound.extra));
    return true;
  }
  Header header;
  header.kind = MessageKind::GoAhead;
  header.to_port = inbound.from.port;
  sender_.send_head(inbound.from.peer, MessageHead(header).add(GoAheadExtra{
                                           inbound.request, id, place, inbound.memory.size()}));
  return true;
}

void Transfers::end_inbound(std::uint32_t id, int error) {
  const std::unique_ptr<Inbound> inbound = inbounds_.take(id);
  if (inbound->is_started) {
    --started_inbounds_;
    regions_.drop(inbound->region);
  }
  if (inbound->arrival) {
    inbound->arrival->finish(error);
  } else {
    requests_.end(inbound->request, error);
  }
  start_inbounds();
}

void Transfers::on_finished(const IncomingMessage& in) {
  if (in.header.tag > UINT32_MAX) return;
  const auto id = static_cast<std::uint32_t>(in.header.tag);
  std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
  if (inbound == nullptr || !(*inbound)->is_started || (*inbound)->from.peer != in.from.peer)
    return;
  end_inbound(id, in.header.status);
}

// --- going out ---------------------------------------------------------------------------------

void Transfers::on_go_ahead(const IncomingMessage& in) {
  std::span<const std::byte> bytes = in.bytes;
  const auto extra = fi::take<GoAheadExtra>(bytes);
  if (!extra) return;
  LinkRequest* const request = requests_.find_asked(extra->request, in.from.peer);
  if (request == nullptr || extra->length > request->large.size()) return;
  request->is_moving = true;
  Outbound outbound;
  outbound.to = request->to;
  outbound.request = extra->request;
  outbound.inbound = extra->inbound;
  outbound.place = extra->place;
  outbound.memory = request->large.first(extra->length);
  waiting_outbounds_.push_back(outbound);
  pump_all();
}

void Transfers::answer_read(PortName to, const RmaExtra& extra, std::span<const std::byte> memory) {
  Outbound outbound;
  outbound.to = to;
  outbound.inbound = extra.inbound;
  outbound.place = extra.place;
  outbound.memory = memory;
  waiting_outbounds_.push_back(outbound);
  pump_all();
}

bool Transfers::pump_all() {
  bool something = false;
  regions_.retry();
  while (!waiting_outbounds_.empty() && outbounds_.size() < kMostOutbounds) {
    outbounds_.push_back(waiting_outbounds_.front());
    waiting_outbounds_.pop_front();
  }
  for (std::size_t i = 0; i < outbounds_.size();) {
    if (!pump(outbounds_[i])) {
      ++i;
      continue;
    }
    const Outbound over = outbounds_[i];
    outbounds_.erase(outbounds_.begin() + static_cast<std::ptrdiff_t>(i));
    if (over.has_region) regions_.drop(over.region);
    if (over.request != 0) requests_.end(over.request, over.error);
    something = true;
  }
  if (!waiting_inbounds_.empty()) start_inbounds();
  return something;
}

// Continues one transfer. Returns true once it is over.
bool Transfers::pump(Outbound& o) {
  if (sender_.is_dead(o.to.peer)) o.error = EHOSTDOWN;
  if (!o.has_region && o.error == 0 && !o.memory.empty()) {
    if (pm_.add_region(o.memory.data(), o.memory.size(), o.region, o.region_offset) != 0) {
      return false;
    }
    o.has_region = true;
  }
  for (;;) {
    if (o.operation != 0) {
      const int state = pm_.test(o.operation);
      if (state == EINPROGRESS) {
        if (is_ordered(o)) send_finished(o);
        return false;
      }
      o.operation = 0;
      if (state != 0) o.error = state;
    }
    if (o.error != 0 || o.written == o.memory.size()) {
      send_finished(o);
      return true;
    }
    if (!write_chunk(o) && o.error == 0) return false;
  }
}

// Returns true if a message sent now arrives after the bytes, so that there is no need to wait for
// their acknowledgement. In shared memory bytes may still wait for a buffer while a message gets
// one at once.
bool Transfers::is_ordered(const Outbound& o) const {
  return o.written == o.memory.size() && pm_.segment().peer(o.to.peer).route == Route::Packet;
}

void Transfers::send_finished(Outbound& o) {
  if (o.is_told || o.error == EHOSTDOWN) return;
  o.is_told = true;
  Header header;
  header.kind = MessageKind::Finished;
  header.to_port = o.to.port;
  header.status = static_cast<std::uint16_t>(o.error);
  header.tag = o.inbound;
  sender_.send_head(o.to.peer, MessageHead(header));
}

// Returns false if the write cannot start now, or has failed.
bool Transfers::write_chunk(Outbound& o) {
  const std::uint64_t n = std::min<std::uint64_t>(o.memory.size() - o.written, kChunkBytes);
  const RegionName there{o.place.region, o.place.nonce, o.place.offset + o.written};
  const int error = pm_.write(o.to.peer, o.region, o.region_offset + o.written, there,
                              static_cast<std::uint32_t>(n), o.operation);
  if (error == 0) {
    o.written += n;
    return true;
  }
  if (error != ENOBUFS) o.error = error;
  return false;
}

void Transfers::fail(std::uint32_t peer) {
  for (const std::uint32_t id : inbounds_.ids()) {
    std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
    if (inbound != nullptr && (*inbound)->from.peer == peer) end_inbound(id, EHOSTDOWN);
  }
  // Outbounds check for dead peers themselves.
}

}  // namespace score::pm::fi
