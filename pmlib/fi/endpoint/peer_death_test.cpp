// Tests how an endpoint of the provider handles a peer that dies during an operation. The test
// plays the peer, message by message.
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/network/network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace score::pm::fi {
namespace {

constexpr std::size_t kLargeBytes = 100'000;

// Rank 0 is the endpoint and rank 1 the peer; the peer has the process id of a child that can be
// killed.
class PeerDeath : public testing::Test {
 protected:
  PeerDeath() : child_(fork()) {
    if (child_ == 0) {
      for (;;) pause();
    }
    JobNetwork network;
    network.key = 7;
    for (int i = 0; i < 2; ++i) network.ranks.push_back({"here", "-", {}});
    std::array<std::unique_ptr<pm::Endpoint>, 2> ends;
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto context = create_context(network, i, true, "", error);
      fds_[i] = dup(context->fd());
      EndpointOptions options;
      options.spin_us = 0;
      ends[i] = pm::Endpoint::make(
          std::move(context), nullptr, [this](std::uint32_t rank) { return dup(fds_[rank]); },
          options, error);
      EXPECT_EQ(error, 0);
    }
    peer_ = std::move(ends[1]);
    peer_->segment().header().owner_pid = static_cast<std::uint32_t>(child_);
    link_ = Link::over(std::move(ends[0]), error);
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_domain_attr attr{};
    fi_info info{};
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.domain_attr = &attr;
    domain_ = std::make_unique<Domain>(link_, info, nullptr);
    av_ = std::make_unique<Av>(*domain_, nullptr);
    cq_ = std::make_unique<Cq>(*domain_, fi_cq_attr{}, nullptr);
    EXPECT_EQ(Ep::open(*domain_, info, &ep_, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep_, &av_->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep_, &cq_->fid, FI_SEND | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep_), 0);
    Name name = link_->peers().name_of(0);
    name.rank = 1;
    EXPECT_EQ(fi_av_insert(av_.get(), &name, 1, &there_, 0, nullptr), 1);
    // The endpoint must know the peer, because it ignores the death of an unknown process.
    EXPECT_EQ(fi_tinject(ep_, "hello", 5, there_, 1), 0);
  }

  ~PeerDeath() override {
    kill_peer();
    fi_close(&ep_->fid);
    for (const int fd : fds_) close(fd);
  }

  void kill_peer() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  // Kills the peer and waits until a send of rank 0 fails, so that rank 0 has noticed the death.
  void let_die() {
    kill_peer();
    const fi_cq_err_entry failed = failure_of([&] {
      EXPECT_EQ(fi_tsend(ep_, large_.data(), kLargeBytes, nullptr, there_, 1, nullptr), 0);
    });
    ASSERT_EQ(failed.err, EHOSTDOWN);
  }

  // Returns the failure of the operation that `begin` starts; `err` is 0 if it did not fail in
  // time.
  template <class Begin>
  fi_cq_err_entry failure_of(Begin begin) {
    begin();
    fi_cq_err_entry failed{};
    for (int i = 0; i < 2000 && fi_cq_readerr(cq_.get(), &failed, 0) != 1; ++i) {
      fi_cq_tagged_entry entry{};
      fi_cq_read(cq_.get(), &entry, 1);
      usleep(1000);
    }
    return failed;
  }

  // Sends a message as the peer's library would.
  void say(std::uint8_t flags, std::uint64_t length, std::size_t bytes) {
    Header header;
    header.kind = MessageKind::Tagged;
    header.flags = flags;
    header.tag = 5;
    const MessageHead head = MessageHead(header).add(Extra{0, length, 9, 0});
    std::byte* buffer = nullptr;
    ASSERT_EQ(peer_->get_send_buffer(0, static_cast<std::uint32_t>(head.size + bytes), &buffer), 0);
    std::copy(head.bytes.begin(), head.bytes.begin() + head.size, buffer);
    ASSERT_EQ(peer_->send(), 0);
    fi_cq_read(cq_.get(), nullptr, 0);
  }

  pid_t child_;
  std::array<int, 2> fds_{};
  std::unique_ptr<pm::Endpoint> peer_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<Domain> domain_;
  std::unique_ptr<Av> av_;
  std::unique_ptr<Cq> cq_;
  fid_ep* ep_ = nullptr;
  fi_addr_t there_ = FI_ADDR_NOTAVAIL;
  std::vector<std::byte> large_ = std::vector<std::byte>(kLargeBytes);
};

TEST_F(PeerDeath, EndsReceiveOfAnnouncedMessage) {
  say(kLarge, kLargeBytes, 0);
  let_die();
  const fi_cq_err_entry failed = failure_of([&] {
    EXPECT_EQ(fi_trecv(ep_, large_.data(), kLargeBytes, nullptr, there_, 5, 0, this), 0);
  });
  EXPECT_EQ(failed.err, EHOSTDOWN);
  EXPECT_EQ(failed.op_context, static_cast<void*>(this));
}

TEST_F(PeerDeath, EndsLargeAndSmallReads) {
  let_die();
  for (const std::size_t length : {std::size_t{8}, kLargeBytes}) {
    const fi_cq_err_entry failed = failure_of(
        [&] { EXPECT_EQ(fi_read(ep_, large_.data(), length, nullptr, there_, 0, 1, this), 0); });
    EXPECT_EQ(failed.err, EHOSTDOWN) << length;
  }
}

TEST_F(PeerDeath, RemovesIncompleteClaimedMessage) {
  say(kSplit, 20'000, 100);
  fi_msg_tagged m{};
  m.addr = there_;
  m.tag = 5;
  m.context = this;
  ASSERT_EQ(fi_trecvmsg(ep_, &m, FI_PEEK | FI_CLAIM), 0);
  fi_cq_tagged_entry entry{};
  while (fi_cq_read(cq_.get(), &entry, 1) == 1 && entry.op_context != this) {
  }
  ASSERT_EQ(entry.op_context, static_cast<void*>(this));
  let_die();
  const iovec iov{large_.data(), kLargeBytes};
  m.msg_iov = &iov;
  m.iov_count = 1;
  EXPECT_EQ(fi_trecvmsg(ep_, &m, FI_CLAIM), -FI_EINVAL);
}

}  // namespace
}  // namespace score::pm::fi
