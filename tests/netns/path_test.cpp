// The path carries less than the links at its ends: two hosts use frames of 8048 bytes, and a
// bridge between them silently drops frames that are too long.
#include "tests/netns/conversation.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm::netns {
namespace {

// Receives packets that are longer than `bytes` from the tests' link.
class Listener {
 public:
  explicit Listener(unsigned bytes) : fd_(socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, bytes, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, 0xffff), BPF_STMT(BPF_RET | BPF_K, 0)};
    const sock_fprog program{4, code};
    const int on = 1;
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(TwoEnds::kInterface));
    check(setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
              setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0 &&
              bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "listening works");
  }

  ~Listener() { close(fd_); }

  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool has_heard() const {
    char byte = 0;
    return recv(fd_, &byte, 1, MSG_TRUNC) > 0;
  }

 private:
  int fd_;
};

class OverABridge : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string reason;
    ends_ = make_ends(true, reason);
    if (!ends_) GTEST_SKIP() << reason;
    try {
      ends_->put_bridge(9000);
    } catch (const std::exception& e) {
      GTEST_SKIP() << e.what();
    }
    // Without this, uncut bursts would pass however narrow a bridge of this kernel is.
    ends_->cut_bursts();
  }

  void run(const bench::Side& side) {
    try {
      ends_->run(side);
    } catch (const std::exception& e) {
      FAIL() << e.what();
    }
  }

  // Sends messages of up to 7,900 bytes until packets of more than `bytes` have arrived.
  void expect_packets_over(unsigned mtu, unsigned bytes) {
    ends_->set_bridge_mtu(mtu);
    const AddressFile file(*ends_, GetParam(), false, "payload 8000\n");
    run([&](int side, Shared& shared) {
      const Listener listener(bytes);
      Talker talker(file.path(), side);
      talker.longest = 7900;
      for (std::uint32_t turn = 1;; ++turn) {
        talker.talk(turn * 250);
        if (listener.has_heard()) shared.count[side][0] = 1;
        // Both count before either checks, so they leave together.
        talker.meet(shared, 2 * turn - 1);
        if (shared.count[0][0] + shared.count[1][0] == 2) shared.finished.fetch_add(1);
        talker.meet(shared, 2 * turn);
        if (shared.finished.load() >= 2) break;
        check(turn < 40, "large packets pass at last");
      }
    });
  }

  std::unique_ptr<TwoEnds> ends_;
};

INSTANTIATE_TEST_SUITE_P(Devices, OverABridge, testing::Values("udp", "ethernet"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_P(OverABridge, FramesGrowToTheSizeOfThePath) {
  expect_packets_over(9000, 7000);
  if (HasFatalFailure()) return;
  expect_packets_over(4000, 3000);  // neither in whole frames nor in the smallest pieces
}

TEST_P(OverABridge, EverythingArrivesOverNarrowPath) {
  expect_packets_over(1500, 1400);
}

TEST_P(OverABridge, NothingIsLostWhenPathNarrows) {
  const AddressFile file(*ends_, GetParam(), false, "payload 8000\n");
  run([&](int side, Shared& shared) {
    Talker talker(file.path(), side);
    talker.longest = 7900;
    std::uint32_t until = 0, meetings = 0;
    for (const unsigned mtu : {9000u, 1500u, 3000u, 1500u}) {
      talker.meet(shared, ++meetings);
      if (side == 0) ends_->set_bridge_mtu(mtu);
      talker.talk(until += 500);
    }
    talker.meet(shared, ++meetings);
  });
}

}  // namespace
}  // namespace score::pm::netns
