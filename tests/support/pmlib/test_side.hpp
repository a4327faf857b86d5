// Provides, for tests, one process's half of libfabric over provider pm, and a relay that loses
// frames.
#pragma once

#include "pmlib/fi/peers/name.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <poll.h>
#include <random>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace score::pm::fi {

struct SideOptions {
  fi_progress progress = FI_PROGRESS_MANUAL;
  std::uint64_t bind_flags = 0;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  std::uint64_t send_flags = 0;  // of operations that have none of their own
  bool counts = true;            // receives and remote writes
  std::uint32_t address_format = FI_FORMAT_UNSPEC;
  std::uint64_t order = 0;  // of messages and accesses
  std::uint64_t caps = 0;   // in addition to those of every side
};

// Owns a domain, an endpoint, an address vector, a completion queue and a counter of receives.
class Side {
 public:
  explicit Side(const SideOptions& options = {}) {
    fi_info* const hints = fi_dupinfo(nullptr);
    hints->fabric_attr->prov_name = strdup("pm");
    hints->caps =
        FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
    hints->caps |= options.caps;
    hints->addr_format = options.address_format;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = options.order;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->data_progress = options.progress;
    hints->tx_attr->op_flags = options.send_flags;
    const int found = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info);
    fi_freeinfo(hints);
    EXPECT_EQ(found, 0) << "is FI_PROVIDER_PATH set?";
    if (found != 0) return;
    EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
    fi_av_attr av_attr{};
    EXPECT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
    fi_cq_attr cq_attr{};
    cq_attr.format = options.format;
    cq_attr.wait_obj = FI_WAIT_FD;
    EXPECT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    fi_cntr_attr counter_attr{};
    EXPECT_EQ(fi_cntr_open(domain, &counter_attr, &counter, nullptr), 0);
    EXPECT_EQ(fi_endpoint(domain, info, &ep, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV | options.bind_flags), 0);
    if (options.counts) {
      EXPECT_EQ(fi_ep_bind(ep, &counter->fid, FI_RECV | FI_REMOTE_WRITE), 0);
    }
    EXPECT_EQ(fi_enable(ep), 0);
  }

  ~Side() {
    if (ep == nullptr) return;
    for (fid* f : {&ep->fid, &counter->fid, &cq->fid, &av->fid}) EXPECT_EQ(fi_close(f), 0);
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    fi_freeinfo(info);
  }

  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  Name name() const {
    Name own;
    std::size_t length = sizeof own;
    EXPECT_EQ(fi_getname(&ep->fid, &own, &length), 0);
    return own;
  }

  fi_addr_t know(const Name& peer) const {
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av, &peer, 1, &address, 0, nullptr), 1);
    return address;
  }

  // Reads one completion; returns false if there is none.
  bool poll(fi_cq_tagged_entry& entry) const { return fi_cq_read(cq, &entry, 1) == 1; }

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* counter = nullptr;
  fid_ep* ep = nullptr;
};

// Forwards datagrams to one side and loses some of them.
class Relay {
 public:
  Relay(const Name& to, unsigned lost_per_1000)
      : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        lost_(lost_per_1000),
        name_(to) {
    to_.sin_family = AF_INET;
    to_.sin_addr.s_addr = to.ip;
    to_.sin_port = to.udp_port;
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length), 0);
    name_.ip = own.sin_addr.s_addr;
    name_.udp_port = own.sin_port;
  }

  ~Relay() { close(fd_); }

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Returns the name by which the other side reaches this relay.
  const Name& name() const { return name_; }

  std::size_t arrived() const { return arrived_; }

  // The relay calls this with each datagram that arrives.
  std::function<void(std::span<const char>)> sees;

  void forward() {
    for (;;) {
      const ssize_t n = recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return;
      ++arrived_;
      if (sees) sees({buffer_.data(), static_cast<std::size_t>(n)});
      if (random_() % 1000 < lost_) continue;
      sendto(fd_, buffer_.data(), static_cast<std::size_t>(n), 0, reinterpret_cast<sockaddr*>(&to_),
             sizeof to_);
    }
  }

 private:
  int fd_;
  unsigned lost_;
  std::size_t arrived_ = 0;
  Name name_;
  sockaddr_in to_{};
  std::array<char, 65536> buffer_;
  std::mt19937 random_{1};
};

}  // namespace score::pm::fi
