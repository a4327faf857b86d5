#include "pmlib/network/broker.hpp"

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/network/network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace score::pm {
namespace {

class BrokerTest : public testing::Test {
 protected:
  BrokerTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0); }

  ~BrokerTest() override {
    for (const int fd : ends_) close(fd);
  }

  void answer(const void* bytes, std::size_t size, const std::vector<int>& fds) {
    iovec block{const_cast<void*>(bytes), size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kBrokerFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &block;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(ends_[1], &message, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }

  void answer(const BrokerReply& reply, const std::vector<int>& fds) {
    answer(&reply, sizeof reply, fds);
  }

  int ends_[2] = {-1, -1};
};

TEST_F(BrokerTest, ContextsComeInSeveralPacketsBeforeDevices) {
  const std::vector<int> many(kBrokerFds, ends_[0]);
  const BrokerReply reply{.contexts = 40, .own = 33, .devices = 2};
  answer(reply, many);
  answer(reply, std::vector<int>(10, ends_[0]));
  BrokeredContext got;
  ASSERT_EQ(ask_broker(ends_[0], got), 0);
  EXPECT_EQ(got.contexts.size(), 40U);
  EXPECT_EQ(got.own, 33U);
  EXPECT_EQ(got.devices.size(), 2U);
}

TEST_F(BrokerTest, BrokerErrorIsReturned) {
  answer({.error = ENETUNREACH}, {});
  BrokeredContext got;
  EXPECT_EQ(ask_broker(ends_[0], got), ENETUNREACH);
}

TEST_F(BrokerTest, GoneBrokerIsError) {
  close(ends_[1]);
  ends_[1] = -1;
  BrokeredContext got;
  EXPECT_EQ(ask_broker(ends_[0], got), ENETDOWN);
}

TEST_F(BrokerTest, InvalidAnswersAreRefused) {
  const std::vector<BrokerReply> hostile = {
      {.contexts = 0, .own = 0},
      {.contexts = 2, .own = 2},
      {.contexts = 0xffffffff, .own = 0},
      {.magic = 1, .contexts = 1},
      {.contexts = 1, .own = 0},  // with two descriptors
      {.contexts = 1, .own = 0, .devices = 5},
  };
  for (const BrokerReply& reply : hostile) {
    answer(reply, {ends_[0], ends_[0]});
    BrokeredContext got;
    EXPECT_EQ(ask_broker(ends_[0], got), EPROTO);
  }
  answer({.contexts = 5, .own = 0}, {});  // would never end without the check
  BrokeredContext none;
  EXPECT_EQ(ask_broker(ends_[0], none), EPROTO);
}

TEST_F(BrokerTest, RandomAndShortPacketsAreRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::array<unsigned char, sizeof(BrokerReply)> bytes{};
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    bytes[0] = 0;  // not the magic
    answer(bytes.data(), 1 + random() % bytes.size(), {});
    BrokeredContext got;
    EXPECT_EQ(ask_broker(ends_[0], got), EPROTO);
  }
}

TEST_F(BrokerTest, EndpointOpensOnBrokeredContext) {
  JobNetwork network;
  network.key = 11;
  network.ranks.assign(2, {"node", "-"});
  std::vector<std::unique_ptr<MappedSegment>> contexts;
  std::vector<int> fds;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    int error = 0;
    contexts.push_back(create_context(network, rank, true, "", error));
    fds.push_back(contexts.back()->fd());
  }
  std::vector<std::unique_ptr<Endpoint>> ranks;
  for (std::uint32_t own = 0; own < 2; ++own) {
    answer({.contexts = 2, .own = own}, fds);
    int error = 0;
    ranks.push_back(Endpoint::open_brokered(ends_[0], error));
    ASSERT_NE(ranks.back(), nullptr) << error;
  }
  std::byte* buffer = nullptr;
  ASSERT_EQ(ranks[0]->get_send_buffer(1, 3, &buffer), 0);
  std::memcpy(buffer, "abc", 3);
  ASSERT_EQ(ranks[0]->send(), 0);
  ReceivedMessage message;
  ASSERT_EQ(ranks[1]->receive(message), 0);
  EXPECT_EQ(std::memcmp(message.bytes.data(), "abc", 3), 0);
  ranks[1]->release(message);
}

}  // namespace
}  // namespace score::pm
