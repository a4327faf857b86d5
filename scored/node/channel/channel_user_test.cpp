#include "scored/node/channel/channel_user.hpp"

#include "pmlib/network/network.hpp"
#include "pmlib/wire/frame.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>

namespace score::node {
namespace {

using Users = std::vector<std::shared_ptr<ChannelUser>>;

class ChannelUserTest : public testing::Test {
 protected:
  ChannelUserTest() {
    socket_ = *sockets_.open({UserId(0), 0, 0}, {.s_addr = htonl(INADDR_LOOPBACK)});
    sender_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  }

  std::shared_ptr<ChannelUser> user(std::uint64_t key, bool has_room = true) {
    auto made = std::make_shared<ChannelUser>(key, nullptr, ChannelUser::Sockets{socket_});
    if (has_room) made->make_room();
    users_.push_back(made);
    return made;
  }

  void send_frame(std::uint64_t key, const std::string& payload) {
    std::string frame(sizeof(pm::FrameHeader), '\0');
    std::memcpy(frame.data() + offsetof(pm::FrameHeader, key), &key, sizeof key);
    send_bytes(frame + payload);
  }

  void send_bytes(const std::string& bytes) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    std::memcpy(&to.sin_addr, socket_->address.data(), 4);
    std::memcpy(&to.sin_port, socket_->address.data() + 4, 2);
    ASSERT_EQ(sendto(sender_.get(), bytes.data(), bytes.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }

  // Returns the payloads of all frames that wait in the socket.
  std::vector<std::string> arrived() {
    std::vector<std::string> all;
    std::string bytes(65536, '\0');
    for (;;) {
      const ssize_t got = recv(socket_->fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0) return all;
      all.push_back(bytes.substr(sizeof(pm::FrameHeader),
                                 static_cast<std::size_t>(got) - sizeof(pm::FrameHeader)));
    }
  }

  void give_to(const std::shared_ptr<ChannelUser>& next) {
    next->take_channel(users_, counters_);
    next->restore(counters_);
  }

  using Texts = std::vector<std::string>;

  ChannelSockets sockets_;
  std::shared_ptr<ChannelSocket> socket_;
  UniqueFd sender_;
  Users users_;
  ChannelCounters counters_;
};

TEST_F(ChannelUserTest, FramesInChannelAreKeptForTheirOwner) {
  const auto first = user(1);
  const auto second = user(2);
  give_to(first);
  send_frame(1, "a");
  send_frame(1, "b");
  give_to(second);
  EXPECT_EQ(arrived(), Texts());
  send_frame(2, "c");
  give_to(first);
  EXPECT_EQ(arrived(), (Texts{"a", "b"}));
  give_to(second);
  EXPECT_EQ(arrived(), (Texts{"c"}));
  EXPECT_EQ(counters_.handovers, 4U);
  EXPECT_EQ(counters_.saved_bursts, 3U);
  EXPECT_EQ(counters_.restored_bursts, 3U);
}

TEST_F(ChannelUserTest, EarlyFramesWaitForTheirTurn) {
  const auto first = user(1);
  const auto second = user(2);
  give_to(first);
  send_frame(2, "early");
  send_frame(1, "late");
  give_to(second);
  EXPECT_EQ(arrived(), (Texts{"early"}));
  give_to(first);
  EXPECT_EQ(arrived(), (Texts{"late"}));
}

TEST_F(ChannelUserTest, FirstUserFindsItsEarlyFrames) {
  const auto first = user(1, false);
  send_frame(1, "early");
  give_to(first);
  EXPECT_EQ(arrived(), (Texts{"early"}));
  EXPECT_EQ(counters_.dropped_full, 0U);
}

TEST_F(ChannelUserTest, HolderOfChannelNeedsNoHandover) {
  const auto first = user(1);
  EXPECT_FALSE(first->holds_channel());
  EXPECT_FALSE(first->follows_another());  // no other attempt had it before
  give_to(first);
  EXPECT_TRUE(first->holds_channel());
  const auto second = user(2);
  EXPECT_TRUE(second->follows_another());
}

TEST_F(ChannelUserTest, FramesOfUnknownAttemptsAreDroppedAndCounted) {
  const auto first = user(1);
  const auto second = user(2);
  socket_->holder = 99;  // an attempt that has ended
  send_frame(99, "of the dead");
  send_frame(7, "strange");
  send_frame(1, "mine");
  give_to(first);
  EXPECT_EQ(arrived(), (Texts{"mine"}));
  EXPECT_EQ(counters_.dropped_strangers, 2U);
}

TEST_F(ChannelUserTest, ExcessFramesAreDroppedAndCounted) {
  const auto first = user(1, false);
  const auto second = user(2);
  give_to(first);
  send_frame(1, "no room");
  give_to(second);
  EXPECT_EQ(counters_.dropped_full, 1U);
  EXPECT_EQ(counters_.saved_bursts, 0U);
}

// With tags in the frames their key cannot be seen, so they are saved for the last holder of the
// channel.
TEST_F(ChannelUserTest, FramesWithoutKeyBelongToLastHolder) {
  const auto first = user(1);
  const auto second = user(2);
  give_to(first);
  send_frame(0x1234567890abcdef, "tagged");
  give_to(second);
  EXPECT_EQ(arrived(), Texts());
  give_to(first);
  EXPECT_EQ(arrived(), (Texts{"tagged"}));
}

TEST_F(ChannelUserTest, HostileBytesDoNoHarm) {
  const auto first = user(1);
  const auto second = user(2);
  give_to(first);
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 2'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    send_bytes(bytes);
    if (i % 10 == 0) give_to(i % 20 == 0 ? second : first);
  }
  give_to(second);
  while (recv(socket_->fd.get(), nullptr, 0, MSG_DONTWAIT) >= 0) continue;
  send_frame(2, "fine");
  EXPECT_EQ(arrived(), (Texts{"fine"}));
}

TEST_F(ChannelUserTest, StoppedTimeIsPublishedInContexts) {
  pm::JobNetwork network;
  network.key = 1;
  network.ranks.assign(1, {"node", "-"});
  int error = 0;
  const auto context = pm::create_context(network, 0, true, "", error);
  auto set = std::make_shared<ContextSet>();
  set->push_back(*duplicate(context->fd()));
  ChannelUser one(1, set, {});
  one.add_stopped(std::chrono::milliseconds(30));
  one.add_stopped(std::chrono::milliseconds(20));
  EXPECT_EQ(context->segment().header().stopped_us, 50'000U);
  EXPECT_EQ(context->segment().header().resumes, 2U);
}

// A user can return the memory to the kernel. Memory that is not sealed may even have been
// truncated.
TEST_F(ChannelUserTest, TruncatedMemoryDoesNoHarm) {
  pm::JobNetwork network;
  network.key = 1;
  network.ranks.assign(1, {"node", "-"});
  int error = 0;
  const auto context = pm::create_context(network, 0, true, "", error);
  const auto bytes = context->segment().bytes();
  const UniqueFd loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(write(loose.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto set = std::make_shared<ContextSet>();
  set->push_back(*duplicate(context->fd()));
  set->push_back(*duplicate(loose.get()));
  ChannelUser both(1, set, {});
  both.add_stopped(std::chrono::milliseconds(30));
  constexpr int kGiveBack = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  ASSERT_EQ(fallocate(context->fd(), kGiveBack, 0, static_cast<off_t>(bytes.size())), 0);
  ASSERT_EQ(ftruncate(loose.get(), 0), 0);
  both.add_stopped(std::chrono::milliseconds(20));
  EXPECT_EQ(context->segment().header().stopped_us, 50'000U);
}

// The user of a context may write anything into it.
TEST_F(ChannelUserTest, OverwrittenContextDoesNoHarm) {
  pm::JobNetwork network;
  network.key = 1;
  network.ranks.assign(1, {"node", "-"});
  int error = 0;
  const auto context = pm::create_context(network, 0, true, "", error);
  auto set = std::make_shared<ContextSet>();
  set->push_back(*duplicate(context->fd()));
  ChannelUser one(1, set, {});
  std::mt19937 random(9);
  for (int i = 0; i < 50; ++i) {
    for (std::byte& byte : context->segment().bytes()) byte = static_cast<std::byte>(random());
    one.add_stopped(std::chrono::milliseconds(1));
  }
  SUCCEED();
}

}  // namespace
}  // namespace score::node
