#include "scored/node/channel/channel_sockets.hpp"

#include "pmlib/wire/frame.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <sys/socket.h>
#include <vector>

namespace score::node {
namespace {

using Place = ChannelSockets::Place;

in_addr loopback() {
  return {.s_addr = htonl(INADDR_LOOPBACK)};
}

TEST(ChannelSockets, JobsOfOneChannelShareASocket) {
  ChannelSockets sockets;
  const Place place{UserId(7), 0, 1};
  auto first = sockets.open(place, loopback());
  ASSERT_TRUE(first);
  const auto address = (*first)->address;
  EXPECT_EQ(*sockets.open(place, loopback()), *first);
  first->reset();
  EXPECT_NE((*sockets.open(place, loopback()))->address, decltype(address){});
}

TEST(ChannelSockets, UsersChannelsAndTasksHaveSeparateSockets) {
  ChannelSockets sockets;
  const auto mine = *sockets.open({UserId(7), 0, 1}, loopback());
  for (const Place& other :
       {Place{UserId(8), 0, 1}, Place{UserId(7), 1, 1}, Place{UserId(7), 0, 2}}) {
    const auto theirs = *sockets.open(other, loopback());
    EXPECT_NE(theirs, mine);
    EXPECT_NE(theirs->address, mine->address);
  }
}

TEST(ChannelSockets, SocketFromShepherdIsTheSameAgain) {
  ChannelSockets before;
  const Place place{UserId(7), 3, 0};
  const auto original = *before.open(place, loopback());
  ChannelSockets after;  // of the restarted daemon
  const auto first = *after.adopt(place, *duplicate(original->fd.get()));
  const auto second = *after.adopt(place, *duplicate(original->fd.get()));
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->address, original->address);
  EXPECT_EQ(*after.open(place, loopback()), first);
}

// Sends a frame of channel 3 and returns true if it can be received.
bool arrives(const ChannelSocket& socket, const pm::FrameOwner& owner) {
  pm::FrameHeader h;
  h.channel = 3;
  h.key = owner.key;
  h.destination = owner.rank;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::memcpy(&to.sin_addr, socket.address.data(), 4);
  std::memcpy(&to.sin_port, socket.address.data() + 4, 2);
  const UniqueFd sender(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(sendto(sender.get(), &h, sizeof h, 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
            static_cast<ssize_t>(sizeof h));
  return recv(socket.fd.get(), &h, sizeof h, MSG_DONTWAIT) > 0;
}

TEST(ChannelSockets, KernelDropsFramesOfUnknownUsers) {
  ChannelSockets sockets;
  const auto socket = *sockets.open({UserId(7), 3, 0}, loopback());
  const std::vector<pm::FrameOwner> both{{5, 0x1122334455667788}, {6, 2}};
  pass_only(*socket, 3, both);
  EXPECT_TRUE(arrives(*socket, both[0]));
  EXPECT_TRUE(arrives(*socket, both[1]));
  EXPECT_FALSE(arrives(*socket, {6, both[0].key}));
  EXPECT_FALSE(arrives(*socket, {5, both[0].key + 1}));
  EXPECT_FALSE(arrives(*socket, {5, both[0].key + (1LL << 32)}));
  pass_only(*socket, 3, std::span(both).first(1));
  EXPECT_TRUE(arrives(*socket, both[0]));
  EXPECT_FALSE(arrives(*socket, both[1]));
  pass_only(*socket, 4, both);
  EXPECT_FALSE(arrives(*socket, both[0]));
}

TEST(ChannelSockets, SocketsOfUnknownUsersAcceptEverything) {
  ChannelSockets before;
  const Place place{UserId(7), 3, 0};
  const auto original = *before.open(place, loopback());
  pass_only(*original, 3, std::vector<pm::FrameOwner>{{5, 1}});
  EXPECT_FALSE(arrives(*original, {5, 2}));
  ChannelSockets after;  // of the restarted daemon
  const auto adopted = *after.adopt(place, *duplicate(original->fd.get()));
  EXPECT_TRUE(arrives(*adopted, {5, 2}));
  pass_only(*adopted, 3, std::vector<pm::FrameOwner>{{5, 1}});
  EXPECT_TRUE(arrives(*adopted, {5, 2}));
  const auto crowded = *before.open({UserId(7), 3, 1}, loopback());
  pass_only(*crowded, 3, std::vector<pm::FrameOwner>(pm::kMostFrameOwners, {5, 1}));
  EXPECT_FALSE(arrives(*crowded, {5, 2}));
  pass_only(*crowded, 3, std::vector<pm::FrameOwner>(pm::kMostFrameOwners + 1, {5, 1}));
  EXPECT_TRUE(arrives(*crowded, {5, 2}));
}

TEST(ChannelSockets, OnlyUdpSocketsAreAdopted) {
  ChannelSockets sockets;
  auto pair = make_socket_pair(SOCK_STREAM);
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(pair->first)));
  auto pipe = make_pipe();
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(pipe->read)));
  UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(tcp)));
}

TEST(ChannelSockets, LoopbackLeadsToThisHost) {
  const auto address = address_towards("127.0.0.1");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(address_of_interface("lo")->s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_FALSE(address_of_interface("none0"));
}

}  // namespace
}  // namespace score::node
