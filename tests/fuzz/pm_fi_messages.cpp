// This fuzz target sends messages of a broken peer to an endpoint of the libfabric provider.
// Whatever arrives, the endpoint must not touch memory that was not offered; the address sanitizer
// detects it.
//
// The input is a list of messages, each after its length. The first byte of a message is its kind.
// They come from rank 0, which is the endpoint's own; then over a link from rank 1, offered to the
// provider as they arrive; then the same, but longer, so that PM asks where their bytes belong.
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/network/network.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

void require(bool promise) {
  if (!promise) std::abort();
}

enum class Way { Alone, Offered, Placed };

constexpr std::size_t kPadding = 257;  // makes every message longer than a short one

std::unique_ptr<MappedSegment> make_context(std::uint32_t rank, std::size_t ranks) {
  JobNetwork network;
  network.key = 7;
  network.ranks.resize(ranks, {"here", "-"});
  for (std::size_t i = 0; i < ranks; ++i) network.ranks[i].host = "node" + std::to_string(i);
  int error = 0;
  auto context = create_context(network, rank, true, "", error);
  require(context != nullptr);
  return context;
}

class StillClock final : public JobClock {
 public:
  Microseconds now() override { return 1000; }
};

// Holds rank 1 and the link to it.
struct Peer {
  std::array<Wire, 2> wires;
  std::unique_ptr<MappedSegment> context = make_context(1, 2);
  WireDevice device{wires[1], wires[0]};
  StillClock clock;
  Channel channel{context->segment(), device, clock, ChannelOptions{}};

  // Acknowledges the messages of the victim and otherwise ignores them.
  void turn() {
    channel.progress();
    ReceivedMessage message;
    while (channel.received().receive(message)) channel.received().release(message.ticket);
    channel.acks().send_all();
  }
};

// The victim's end of the link; the peer runs at each poll.
class VictimDevice final : public PacketDevice {
 public:
  explicit VictimDevice(Peer& peer) : peer_(peer) {}

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    return end_.send(to, frames);
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    peer_.turn();
    return end_.receive(sink, limit);
  }

  int poll_fd() const override { return end_.poll_fd(); }

  std::size_t frame_bytes() const override { return end_.frame_bytes(); }

 private:
  Peer& peer_;
  WireDevice end_{peer_.wires[0], peer_.wires[1]};
};

std::unique_ptr<Endpoint> open_victim(Way way, Peer& peer) {
  EndpointOptions options;
  options.spin_us = 0;
  options.channel.may_use_fast_path = way != Way::Offered;
  std::unique_ptr<PacketDevice> device;
  if (way != Way::Alone) device = std::make_unique<VictimDevice>(peer);
  int error = 0;
  auto endpoint = Endpoint::make(
      make_context(0, way == Way::Alone ? 1 : 2), std::move(device),
      [](std::uint32_t) { return -1; }, options, error);
  require(endpoint != nullptr);
  return endpoint;
}

// An endpoint with receives of each kind and some registered memory.
struct Victim {
  Way way;
  Peer peer;
  Endpoint* raw = nullptr;
  std::shared_ptr<fi::Link> link;
  std::unique_ptr<fi::Domain> domain;
  std::unique_ptr<fi::Av> av;
  std::unique_ptr<fi::Cq> cq;
  fid_ep* ep = nullptr;
  fid_mr* mr = nullptr;
  std::vector<std::byte> open = std::vector<std::byte>(512);
  std::array<std::array<std::byte, 200>, 6> receives{};
  std::array<std::byte, 1200> long_receive{};

  explicit Victim(Way taken) : way(taken) {
    auto endpoint = open_victim(way, peer);
    raw = endpoint.get();
    int error = 0;
    link = fi::Link::over(std::move(endpoint), error);
    require(link != nullptr);
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_domain_attr domain_attr{};
    domain_attr.threading = FI_THREAD_DOMAIN;
    fi_info info{};
    info.caps = FI_DIRECTED_RECV;
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.domain_attr = &domain_attr;
    domain = std::make_unique<fi::Domain>(link, info, nullptr);
    av = std::make_unique<fi::Av>(*domain, nullptr);
    cq = std::make_unique<fi::Cq>(*domain, fi_cq_attr{}, nullptr);
    require(fi::Ep::open(*domain, info, &ep, nullptr) == 0);
    require(fi_ep_bind(ep, &av->fid, 0) == 0 && fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV) == 0);
    require(fi_enable(ep) == 0);
    const fi::Name name = link->peers().name_of(0);
    require(fi_av_insert(av.get(), &name, 1, nullptr, 0, nullptr) == 1);
    fi_mr_attr attr{};
    const iovec iov{open.data(), open.size()};
    attr.mr_iov = &iov;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    require(domain->register_memory(attr, 0, &mr) == 0);
    post();
  }

  void post() {
    for (std::size_t i = 0; i < 4; ++i) {
      fi_trecv(ep, receives[i].data(), 20 + 60 * i, nullptr, FI_ADDR_UNSPEC, i, i % 2, nullptr);
    }
    fi_trecv(ep, long_receive.data(), long_receive.size(), nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr);
    const iovec iov{receives[4].data(), receives[4].size()};
    fi_msg m{};
    m.msg_iov = &iov;
    m.iov_count = 1;
    m.addr = FI_ADDR_UNSPEC;
    fi_recvmsg(ep, &m, FI_MULTI_RECV);
    fi_recv(ep, receives[5].data(), receives[5].size(), nullptr, 0, nullptr);
  }

  void send(const std::uint8_t* bytes, std::size_t length) {
    const std::size_t padded = length + (way == Way::Placed ? kPadding : 0);
    const auto size = static_cast<std::uint32_t>(padded);
    std::byte* buffer = nullptr;
    const int error = way == Way::Alone ? raw->get_send_buffer(0, size, &buffer)
                                        : peer.channel.get_send_buffer(0, size, &buffer);
    if (error != 0) return;
    std::memset(buffer, 0, padded);
    if (length > 0) std::memcpy(buffer, bytes, length);
    if (way == Way::Alone) {
      raw->send();
    } else {
      peer.channel.send();
    }
  }

  ~Victim() {
    fi_close(&mr->fid);
    fi_close(&ep->fid);
  }
};

void play(Way way, const std::uint8_t* data, std::size_t size) {
  Victim victim(way);
  std::array<fi_cq_entry, 8> entries;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = std::min<std::size_t>(data[at], size - at - 1);
    victim.send(data + at + 1, length);
    at += 1 + length;
    victim.cq->read(entries.data(), entries.size(), nullptr);
    fi_cq_err_entry error{};
    while (victim.cq->read_error(error) == 1) {
    }
  }
  victim.post();
  victim.cq->read(entries.data(), entries.size(), nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const Way way : {Way::Alone, Way::Offered, Way::Placed}) play(way, data, size);
  return 0;
}
