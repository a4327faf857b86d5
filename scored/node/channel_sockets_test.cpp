#include "scored/node/channel_sockets.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>

namespace score::node {
namespace {

using Place = ChannelSockets::Place;

in_addr loopback() {
  return {.s_addr = htonl(INADDR_LOOPBACK)};
}

TEST(ChannelSockets, JobsOfOneChannelShareASocketWhileOneHoldsIt) {
  ChannelSockets sockets;
  const Place place{UserId(7), 0, 1};
  auto first = sockets.open(place, loopback());
  ASSERT_TRUE(first);
  const auto address = (*first)->address;
  EXPECT_EQ(*sockets.open(place, loopback()), *first);
  first->reset();
  EXPECT_NE((*sockets.open(place, loopback()))->address, decltype(address){});
}

TEST(ChannelSockets, OtherUsersChannelsAndTasksHaveTheirOwn) {
  ChannelSockets sockets;
  const auto mine = *sockets.open({UserId(7), 0, 1}, loopback());
  for (const Place& other :
       {Place{UserId(8), 0, 1}, Place{UserId(7), 1, 1}, Place{UserId(7), 0, 2}}) {
    const auto theirs = *sockets.open(other, loopback());
    EXPECT_NE(theirs, mine);
    EXPECT_NE(theirs->address, mine->address);
  }
}

TEST(ChannelSockets, WhatAShepherdKeptIsTheSameSocketAgain) {
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

TEST(ChannelSockets, NothingButAUdpSocketIsAdopted) {
  ChannelSockets sockets;
  auto pair = make_socket_pair(SOCK_STREAM);
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(pair->first)));
  auto pipe = make_pipe();
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(pipe->read)));
  UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(sockets.adopt({UserId(7), 0, 0}, std::move(tcp)));
}

TEST(ChannelSockets, TheWayToThisHostIsItself) {
  const auto address = address_towards("127.0.0.1");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(address_of_interface("lo")->s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_FALSE(address_of_interface("none0"));
}

}  // namespace
}  // namespace score::node
