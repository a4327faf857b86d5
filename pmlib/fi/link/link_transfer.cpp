// Implements large transfers. Both ends of a transfer hold a region of PM while its bytes move,
// from two quotas. With a single quota, two processes that fetch from each other could each hold
// all their regions for incoming bytes and have none for outgoing ones.
#include "pmlib/fi/link/link.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pm::fi {

namespace {

constexpr std::size_t kMostInbounds = 40;
constexpr std::size_t kMostOutbounds = 40;
constexpr std::uint64_t kChunkBytes = 256ull << 20;  // PM takes less than 4 GB at once

}  // namespace

// --- coming in ---------------------------------------------------------------------------------

void Link::fetch(PortName from, std::uint32_t request, std::span<std::byte> memory,
                 std::unique_ptr<TransferArrival> arrival) {
  if (peers_[from.peer].is_dead) return arrival->finish(EHOSTDOWN);
  auto inbound = std::make_unique<Inbound>();
  inbound->from = from;
  inbound->request = request;
  inbound->memory = memory;
  inbound->arrival = std::move(arrival);
  waiting_inbounds_.push_back(inbounds_.add(std::move(inbound)));
  start_inbounds();
}

void Link::read_into(std::unique_ptr<LinkRequest> request, const Header& header,
                     const RmaExtra& extra, std::span<std::byte> memory) {
  if (peers_[request->to.peer].is_dead) return submit(std::move(request));  // ends the request
  auto inbound = std::make_unique<Inbound>();
  inbound->from = request->to;
  inbound->memory = memory;
  inbound->header = header;
  inbound->extra = extra;
  inbound->request = enter(*request);
  inbound->extra.request = inbound->request;
  ++live_requests_;
  LinkRequest* const owned = request.release();  // its table entry owns it from here on
  owned->inbound = inbounds_.add(std::move(inbound));
  waiting_inbounds_.push_back(owned->inbound);
  start_inbounds();
}

void Link::start_inbounds() {
  while (!waiting_inbounds_.empty() && started_inbounds_ < kMostInbounds) {
    const std::uint32_t id = waiting_inbounds_.front();
    std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
    if (inbound != nullptr && !start_inbound(**inbound, id)) return;
    waiting_inbounds_.pop_front();
  }
}

// Registers the memory and notifies the peer. Returns false if no region is free.
bool Link::start_inbound(Inbound& inbound, std::uint32_t id) {
  fi::RegionPlace place;
  if (pm_->add_region(inbound.memory.data(), inbound.memory.size(), place.region, place.offset) !=
      0) {
    return false;
  }
  place.nonce = pm_->segment().region(place.region).nonce;
  inbound.region = place.region;
  inbound.is_started = true;
  ++started_inbounds_;
  if (inbound.arrival == nullptr) {
    inbound.extra.inbound = id;
    inbound.extra.place = place;
    send_head(inbound.from.peer, MessageHead(inbound.header).add(inbound.extra));
    return true;
  }
  Header header;
  header.kind = MessageKind::GoAhead;
  header.to_port = inbound.from.port;
  send_head(inbound.from.peer, MessageHead(header).add(GoAheadExtra{inbound.request, id, place,
                                                                    inbound.memory.size()}));
  return true;
}

void Link::end_inbound(std::uint32_t id, int error) {
  const std::unique_ptr<Inbound> inbound = inbounds_.take(id);
  if (inbound->is_started) {
    --started_inbounds_;
    drop_region(inbound->region);
  }
  if (inbound->arrival) {
    inbound->arrival->finish(error);
  } else if (LinkRequest** const request = requests_.find(inbound->request); request != nullptr) {
    end(*request, error);
  }
  start_inbounds();
}

void Link::on_finished(const IncomingMessage& in) {
  if (in.header.tag > UINT32_MAX) return;
  const auto id = static_cast<std::uint32_t>(in.header.tag);
  std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
  if (inbound == nullptr || !(*inbound)->is_started || (*inbound)->from.peer != in.from.peer)
    return;
  end_inbound(id, in.header.status);
}

// --- going out ---------------------------------------------------------------------------------

void Link::on_go_ahead(const IncomingMessage& in) {
  std::span<const std::byte> bytes = in.bytes;
  const auto extra = fi::take<GoAheadExtra>(bytes);
  if (!extra) return;
  LinkRequest** const found = requests_.find(extra->request);
  if (found == nullptr) return;
  LinkRequest& request = **found;
  if (request.to.peer != in.from.peer || request.is_queued || request.is_moving ||
      extra->length > request.large.size()) {
    return;
  }
  request.is_moving = true;
  Outbound outbound;
  outbound.to = request.to;
  outbound.request = extra->request;
  outbound.inbound = extra->inbound;
  outbound.place = extra->place;
  outbound.memory = request.large.first(extra->length);
  waiting_outbounds_.push_back(outbound);
  pump_all();
}

void Link::answer_read(PortName to, const RmaExtra& extra, std::span<const std::byte> memory) {
  Outbound outbound;
  outbound.to = to;
  outbound.inbound = extra.inbound;
  outbound.place = extra.place;
  outbound.memory = memory;
  waiting_outbounds_.push_back(outbound);
  pump_all();
}

bool Link::pump_all() {
  bool something = false;
  for (std::size_t i = 0; i < undropped_.size();) {
    if (pm_->drop_region(undropped_[i]) == EBUSY) {
      ++i;
      continue;
    }
    undropped_[i] = undropped_.back();
    undropped_.pop_back();
  }
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
    end_outbound(over);
    something = true;
  }
  if (!waiting_inbounds_.empty()) start_inbounds();
  return something;
}

void Link::end_outbound(const Outbound& outbound) {
  if (outbound.has_region) drop_region(outbound.region);
  if (outbound.request == 0) return;
  if (LinkRequest** const request = requests_.find(outbound.request); request != nullptr) {
    end(*request, outbound.error);
  }
}

// Continues one transfer. Returns true once it is over.
bool Link::pump(Outbound& o) {
  if (peers_[o.to.peer].is_dead) o.error = EHOSTDOWN;
  if (!o.has_region && o.error == 0 && !o.memory.empty()) {
    if (pm_->add_region(o.memory.data(), o.memory.size(), o.region, o.region_offset) != 0) {
      return false;
    }
    o.has_region = true;
  }
  for (;;) {
    if (o.operation != 0) {
      const int state = pm_->test(o.operation);
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
bool Link::is_ordered(const Outbound& o) const {
  return o.written == o.memory.size() && pm_->segment().peer(o.to.peer).route == Route::Packet;
}

void Link::send_finished(Outbound& o) {
  if (o.is_told || o.error == EHOSTDOWN) return;
  o.is_told = true;
  Header header;
  header.kind = MessageKind::Finished;
  header.to_port = o.to.port;
  header.status = static_cast<std::uint16_t>(o.error);
  header.tag = o.inbound;
  send_head(o.to.peer, MessageHead(header));
}

// Returns false if the write cannot start now, or has failed.
bool Link::write_chunk(Outbound& o) {
  const std::uint64_t n = std::min<std::uint64_t>(o.memory.size() - o.written, kChunkBytes);
  const RegionName there{o.place.region, o.place.nonce, o.place.offset + o.written};
  const int error = pm_->write(o.to.peer, o.region, o.region_offset + o.written, there,
                               static_cast<std::uint32_t>(n), o.operation);
  if (error == 0) {
    o.written += n;
    return true;
  }
  if (error != ENOBUFS) o.error = error;
  return false;
}

void Link::drop_region(std::uint32_t region) {
  if (pm_->drop_region(region) == EBUSY) undropped_.push_back(region);
}

void Link::end_transfers_of(std::uint32_t rank) {
  for (const std::uint32_t id : inbounds_.ids()) {
    std::unique_ptr<Inbound>* const inbound = inbounds_.find(id);
    if (inbound != nullptr && (*inbound)->from.peer == rank) end_inbound(id, EHOSTDOWN);
  }
  // Outbounds check for dead peers themselves.
}

}  // namespace score::pm::fi
