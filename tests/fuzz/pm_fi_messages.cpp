// Messages of a broken peer against an endpoint of the libfabric provider. Whatever arrives, no
// memory is touched that was not offered: address sanitizer sees it.
//
// The input is a list of messages, each led by its length. The first byte of a message is its kind.
// They come from rank 0, which is the endpoint's own.
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/network/network.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

void require(bool promise) {
  if (!promise) std::abort();
}

std::unique_ptr<Endpoint> open_alone() {
  JobNetwork network;
  network.key = 7;
  network.ranks.push_back({"here", "-"});
  int error = 0;
  auto context = create_context(network, 0, true, "", error);
  require(context != nullptr);
  EndpointOptions options;
  options.spin_us = 0;
  auto endpoint = Endpoint::make(
      std::move(context), nullptr, [](std::uint32_t) { return -1; }, options, error);
  require(endpoint != nullptr);
  return endpoint;
}

// An endpoint with receives of each sort and some registered memory.
struct Victim {
  Endpoint* raw = nullptr;
  std::shared_ptr<fi::Link> link;
  std::unique_ptr<fi::Domain> domain;
  std::unique_ptr<fi::Av> av;
  std::unique_ptr<fi::Cq> cq;
  fid_ep* ep = nullptr;
  fid_mr* mr = nullptr;
  std::vector<std::byte> open = std::vector<std::byte>(512);
  std::array<std::array<std::byte, 200>, 6> receives{};

  Victim() {
    auto endpoint = open_alone();
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
    const fi::Name name = link->name_of(0);
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
    const iovec iov{receives[4].data(), receives[4].size()};
    fi_msg m{};
    m.msg_iov = &iov;
    m.iov_count = 1;
    m.addr = FI_ADDR_UNSPEC;
    fi_recvmsg(ep, &m, FI_MULTI_RECV);
    fi_recv(ep, receives[5].data(), receives[5].size(), nullptr, 0, nullptr);
  }

  ~Victim() {
    fi_close(&mr->fid);
    fi_close(&ep->fid);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Victim victim;
  std::array<fi_cq_entry, 8> entries;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = std::min<std::size_t>(data[at], size - at - 1);
    std::byte* buffer = nullptr;
    if (victim.raw->get_send_buffer(0, static_cast<std::uint32_t>(length), &buffer) == 0) {
      if (length > 0) std::memcpy(buffer, data + at + 1, length);
      victim.raw->send();
    }
    at += 1 + length;
    victim.cq->read(entries.data(), entries.size(), nullptr);
    fi_cq_err_entry error{};
    while (victim.cq->read_error(error) == 1) {
    }
  }
  victim.post();
  victim.cq->read(entries.data(), entries.size(), nullptr);
  return 0;
}
